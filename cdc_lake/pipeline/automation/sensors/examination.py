"""Examine the tables or checks of a pipeline in parallel, in one tick of a sensor; the error of one stops no other.

One after another, fifty tables of which each waits a second for an open transaction would take longer than a tick may.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import dagster as dg

from cdc_lake.contract.errors import ContractError, StoreUnreachableError
from cdc_lake.pipeline.table_flow import TableFlow
from resources.errors import LeaderMoving, ResourceError, Unreachable

S = TypeVar("S")
R = TypeVar("R")

AT_ONCE = 8
SECONDS = 40.0
"""The time for all examinations of a tick. Dagster ends a tick after 60 s and discards what it found."""


class NotExamined(ResourceError):  # noqa: N818 - named as all exceptions in resources/errors.py
    """There was no time for a subject in this tick."""


def examine(
    subjects: Sequence[S],
    find: Callable[[S], R],
    *,
    fatal: Callable[[Exception], bool] = lambda _: False,
    seconds: float | None = None,
) -> list[R | Exception]:
    """Return what `find` returns or raises for each subject, in order.

    A subject that is not done after `seconds` gets NotExamined; its thread ends on its own. As soon as an error is
    `fatal`, that error is raised.
    """
    seconds = SECONDS if seconds is None else seconds
    deadline = time.monotonic() + seconds
    threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="examination")
    try:
        futures = [threads.submit(_outcome, find, each, fatal) for each in subjects]
        pending = set(futures)
        while pending and (left := deadline - time.monotonic()) > 0:
            done, pending = wait(pending, timeout=left, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()  # raises a fatal error
        return [_result(each, seconds) for each in futures]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def examine_tables(
    context: dg.SensorEvaluationContext, tables: Sequence[TableFlow], find: Callable[[TableFlow], R]
) -> dict[str, R | dg.SkipReason]:
    """Return what `find` returns for each table by name, or the reason why nothing is known about it.

    An error of a table is logged and is its reason; one that is not expected of a table, with its traceback. Raises the
    error if a system does not answer, and an unexpected one that all tables have.
    """
    found = examine(tables, find, fatal=is_outage)
    errors = [each for each in found if isinstance(each, Exception)]
    if errors and len(errors) == len(found) and not any(isinstance(each, ContractError) for each in errors):
        raise errors[0]
    return {
        table.name: reason(context, table, each) if isinstance(each, Exception) else each
        for table, each in zip(tables, found, strict=True)
    }


def _outcome(find: Callable[[S], R], subject: S, fatal: Callable[[Exception], bool]) -> R | Exception:
    try:
        return find(subject)
    except Exception as error:
        if fatal(error):
            raise
        return error


def _result(future: Future[R | Exception], seconds: float) -> R | Exception:
    if not future.done():
        return NotExamined(f"Cannot examine it within {seconds:.0f} s.", "The next tick examines it again.")
    return future.result()


def is_outage(error: Exception) -> bool:
    """Return whether a system does not answer: every other table would wait for it too."""
    return isinstance(error, Unreachable | StoreUnreachableError) and not isinstance(error, LeaderMoving)


def reason(context: dg.SensorEvaluationContext, table: TableFlow, error: Exception) -> dg.SkipReason:
    """Log the error of a table, and return it as the reason why no run is requested."""
    if isinstance(error, ContractError | ResourceError):
        context.log.warning(f"{table.name}: {error.user_message}")
        return dg.SkipReason(error.user_message)
    message = f"Cannot examine table {table.name}: {error!r}"
    context.log.error(message, exc_info=error)
    return dg.SkipReason(message)
