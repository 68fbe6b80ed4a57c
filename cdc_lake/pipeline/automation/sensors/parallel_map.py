"""Call a function for each table or check of a pipeline in parallel, within the time of one sensor tick.

An error of one does not stop the others. Without threads, fifty tables of which each waits a second for an open
transaction would take longer than Dagster allows for a tick.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import dagster as dg

from cdc_lake.contract.errors import ContractError, StoreUnreachableError
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.errors import LeaderMoving, ResourceError, Unreachable

S = TypeVar("S")
R = TypeVar("R")

MAX_THREADS = 8
TICK_SECONDS = 40.0
"""The time for all calls of a tick. Dagster ends a tick after 60 s and discards its result."""


class NotInTime(ResourceError):  # noqa: N818 - named as all exceptions in resources/errors.py
    """A call did not end within the time of the tick."""


def map_parallel(
    subjects: Sequence[S],
    find: Callable[[S], R],
    *,
    fatal: Callable[[Exception], bool] = lambda _: False,
    seconds: float | None = None,
) -> list[R | Exception]:
    """Return what `find` returns or raises for each subject, in order.

    The result is NotInTime for a subject that is not done after `seconds`; its thread continues until `find` returns.
    As soon as `find` raises an error for which `fatal` is true, raises that error.
    """
    seconds = TICK_SECONDS if seconds is None else seconds
    deadline = time.monotonic() + seconds
    threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="tick")
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


def map_tables(
    context: dg.SensorEvaluationContext, tables: Sequence[PipelineTable], find: Callable[[PipelineTable], R]
) -> dict[str, R | dg.SkipReason]:
    """Return by table name what `find` returns for the table; if it raises an error, the reason to skip the table.

    Logs the error, with its traceback if it is neither a ContractError nor a ResourceError. Raises the error if a
    system does not answer, and if `find` fails for all tables without a ContractError.
    """
    found = map_parallel(tables, find, fatal=is_outage)
    errors = [each for each in found if isinstance(each, Exception)]
    if errors and len(errors) == len(found) and not any(isinstance(each, ContractError) for each in errors):
        raise errors[0]
    return {
        table.name: skip_reason(context, table, each) if isinstance(each, Exception) else each
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
        return NotInTime(f"There is no result after {seconds:.0f} s.", "The next tick tries again.")
    return future.result()


def is_outage(error: Exception) -> bool:
    """Return whether a system does not answer: every other table would wait for it too."""
    return isinstance(error, Unreachable | StoreUnreachableError) and not isinstance(error, LeaderMoving)


def skip_reason(context: dg.SensorEvaluationContext, table: PipelineTable, error: Exception) -> dg.SkipReason:
    """Log the error of a table, and return it as the reason why no run is requested."""
    if isinstance(error, ContractError | ResourceError):
        context.log.warning(f"{table.name}: {error.user_message}")
        return dg.SkipReason(error.user_message)
    message = f"Cannot find the pending runs of table {table.name}: {error!r}"
    context.log.error(message, exc_info=error)
    return dg.SkipReason(message)
