"""Run the jobs of one caller in one Spark application that keeps running: continuous mode on EMR.

Requests and reports are numbered objects below a prefix: the caller creates `requests/1.json`, `requests/2.json`, …
and the session creates `reports/N.json`. A session that ends creates the next request itself, as CLOSED. The caller's
conditional put of that number then fails, and it starts another session; no request is lost or run twice.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from cdc_lake.contract.errors import ObjectConflictError, StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.objects.conditional_put import put_or_get
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError
from cdc_lake.jobs.remote import job_call, secret_values

MAX_RUNNING_JOBS = 8
"""The maximum number of jobs at the same time: four landings and four applies (pipeline/continuous/run.py)."""
IDLE_SECONDS = 900.0
"""The session ends after this time without a request: its caller may have been killed, and the application costs."""
POLL_SECONDS = 0.5
REPORT_SECONDS = 600.0
"""How long the put of a report is repeated; then the session ends with the error, and the caller starts another one."""
CLOSED = b"{}"
"""The body of the request after which a session runs no more jobs."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RequestObjects:
    """The requests and reports of a session, in a bucket below a prefix that ends with a slash."""

    store: ObjectStore
    prefix: str

    def start(self) -> None:
        """Claim the session. Raises ObjectConflictError if it has been started before: AWS may repeat a run."""
        try:
            self.store.put_new(f"{self.prefix}started", b"")
        except PreconditionFailedError as error:
            raise ObjectConflictError(
                f"Cannot start the session {self.prefix}: it was started before, and may have run its requests. "
                "The caller starts another session."
            ) from error

    def request(self, number: int) -> bytes | None:
        """Return a request, None if it does not exist yet."""
        found = self.store.get(f"{self.prefix}requests/{number}.json")
        return None if found is None else found.body

    def close(self, number: int) -> bool:
        """Create a request as CLOSED; return whether the caller has not created it before."""
        try:
            self.store.put_new(f"{self.prefix}requests/{number}.json", CLOSED)
        except PreconditionFailedError:
            return False
        return True

    def report(self, number: int, text: str) -> None:
        """Write the report of a request, also if the store fails for some time: the caller waits for it."""
        Retrying(
            stop=stop_after_delay(REPORT_SECONDS),
            wait=wait_exponential(multiplier=0.5, max=15),
            retry=retry_if_exception_type((StoreUnreachableError, StoreRefusedError)),
            reraise=True,
        )(put_or_get, self.store, f"{self.prefix}reports/{number}.json", text.encode())


def serve(
    objects: RequestObjects, spark: SparkSession, stop: threading.Event, idle_seconds: float = IDLE_SECONDS
) -> None:
    """Run requests until one is CLOSED, `stop` is set, or no request came for `idle_seconds`; then finish the jobs."""
    objects.start()
    number, newest = 1, time.monotonic()
    running: list[Future[None]] = []
    with ThreadPoolExecutor(MAX_RUNNING_JOBS, thread_name_prefix="job") as threads:
        while (body := objects.request(number)) != CLOSED:
            for each in running:
                if each.done():
                    each.result()  # raises if the report could not be written: the caller waits for it while we run
            if body is not None:
                running = [each for each in running if not each.done()]
                running.append(threads.submit(_run_request, objects, number, body, spark))
                number, newest = number + 1, time.monotonic()
            elif stop.is_set() or (time.monotonic() > newest + idle_seconds and all(each.done() for each in running)):
                objects.close(number)
            else:
                stop.wait(POLL_SECONDS)


def _run_request(objects: RequestObjects, number: int, body: bytes, spark: SparkSession) -> None:
    """Run a request's job and write its report or its error."""
    # One scheduler pool per thread, so that jobs of several threads run at the same time.
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)
    try:
        request = json.loads(body)
        job = job_call.JOBS[request["job"]]
        spec = job_call.spec_of(job, request["spec"], secret_values.password)
        text = job_call.report_text(job(spark, spec))
    except Exception as error:  # noqa: BLE001 - the caller raises it
        _log.exception("Request %s failed.", number)
        text = job_call.error_text(error)
    objects.report(number, text)
