"""Waits for a condition with a timeout."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from resources.errors import WaitTimedOut

Seen = TypeVar("Seen")


def until(
    read: Callable[[], Seen],
    done: Callable[[Seen], bool],
    *,
    seconds: float,
    what: str,
    state: Callable[[Seen], object] = str,
    hint: str = "",
    pause_seconds: float = 0.1,
) -> Seen:
    """Call `read` until `done` accepts its result; return that result. Exceptions of `read` are not caught.

    Args:
        read: returns the current state.
        done: whether that state is the expected one.
        seconds: the timeout.
        what: completes "Waited 30 s for …" in the error.
        state: returns the part of a result that the error contains.
        hint: a sentence that is appended to the error.
        pause_seconds: the pause between two calls.

    Raises:
        WaitTimedOut: the state was not reached in time; the message contains the last state.
    """
    waiting = Retrying(
        stop=stop_after_delay(seconds),
        wait=wait_fixed(pause_seconds),
        retry=retry_if_result(lambda seen: not done(seen)),
    )
    try:
        return waiting(read)
    except RetryError as error:
        seen = error.last_attempt.result()
        last = "" if seen is None else f" Last state: {state(seen)}."
        raise WaitTimedOut(f"Waited {seconds:.0f} s for {what}, without success.{last}", hint) from error
