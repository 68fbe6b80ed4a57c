"""Waiting for a condition, with a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from resources.errors import WaitTimedOut

Seen = TypeVar("Seen")


def until(
    look: Callable[[], Seen],
    done: Callable[[Seen], bool],
    *,
    seconds: float,
    what: str,
    hint: str = "",
    pause_seconds: float = 0.1,
) -> Seen:
    """Look again and again; return what was seen when `done` says so. What `look` raises is let through.

    Args:
        look: asks for the present state.
        done: whether that state is the one that is waited for.
        seconds: the bound.
        what: completes "waited 30 s for …" in the error.
        hint: a sentence to append to it.
        pause_seconds: between two looks.

    Raises:
        WaitTimedOut: it wasn't seen within the bound; the message has what was seen last.
    """
    waiting = Retrying(
        stop=stop_after_delay(seconds),
        wait=wait_fixed(pause_seconds),
        retry=retry_if_result(lambda seen: not done(seen)),
    )
    try:
        return waiting(look)
    except RetryError as error:
        last = error.last_attempt.result()
        raise WaitTimedOut(f"Waited {seconds:.0f} s for {what}. Last seen: {last}.", hint) from error
