"""The base class for jobs on EMR: uploads the spec, starts the run, waits, and reads the report or the error."""

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import dagster as dg
from pydantic import Field, PrivateAttr
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from resources.aws.aws_resource import AwsRequestFailed, AwsResource
from resources.aws.errors import THROTTLED
from resources.errors import JobFailed, Unreachable
from resources.spark import properties_files
from resources.spark.emr.code import Code, EmrCode
from resources.spark.emr.job_files import JobFiles
from resources.spark.job_interface import JobRun, JobTexts
from resources.waiting import until

S = TypeVar("S")
R = TypeVar("R")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Submission:
    """A run to start: the job, a unique id, the code, the program's arguments, and Spark's settings."""

    job: str
    id: str
    code: Code
    arguments: tuple[str, ...]
    settings: Mapping[str, str]
    is_session: bool = False
    """Whether the run has no end of its own: it runs jobs until it is closed (session.py)."""

    @property
    def name(self) -> str:
        """The unique name of the run."""
        return f"{self.job}-{self.id}"


class EmrJobs(AwsResource):
    """Spark jobs on EMR (implements job_interface.SparkJobs).

    run() raises what the job raised; JobFailed if it ended without a report or an error; WaitTimedOut; and Unreachable,
    AccessRefused or AwsRequestFailed if a request fails.
    """

    files: JobFiles
    code: EmrCode
    texts: dg.ResourceDependency[JobTexts]
    properties: list[str] = Field(description="Files with Spark's settings; later ones take precedence.")
    settings: dict[str, str] = Field(
        default={},
        description="More of Spark's settings. `spark.cdc_lake.kafka.<option>` sets an option of its Kafka source: for"
        " MSK with IAM security.protocol, sasl.mechanism, sasl.jaas.config and sasl.client.callback.handler.class.",
    )
    secrets: dict[str, str] = Field(
        default={}, description="ARNs of secrets in Secrets Manager, by their names in specs: source-password."
    )
    poll_seconds: float = Field(default=10.0, gt=0)
    patience_seconds: float = Field(
        default=600.0, gt=0, description="How long a call that AWS throttles or does not answer is retried."
    )
    run_seconds: float = Field(
        default=86_400.0, gt=0, description="How long a job may take, including its time in the queue."
    )

    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _uploaded: Code | None = PrivateAttr(default=None)
    _thread: Any = PrivateAttr(default_factory=threading.local)
    _cancelled: Any = PrivateAttr(default_factory=threading.Event)

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """Run a job and return its report. If the wait ends before the job, the job is cancelled."""
        name = self.texts.name(job)
        run_id = str(uuid4())
        spec_name, report_name = (f"runs/{name}-{run_id}/{part}.json" for part in ("spec", "report"))
        self.files.put_new(spec_name, self.texts.request(job, spec, self.secrets).encode())
        places = ("--spec", self.files.uri(spec_name), "--report", self.files.uri(report_name))
        run = self._thread.last = self._start(self._submission(name, run_id, ("job", "--name", name, *places)))
        _log.info("Job %s has started as run %s. EMR will write its log to %s", name, run.id, run.logs)
        try:
            ended = self._ended(run)
        except BaseException as error:  # also KeyboardInterrupt: no other process reads the report
            self._give_up(run, error)
            raise
        report: R = self._report(job, ended, report_name)
        return report

    def warm(self) -> None:
        """Upload code and jars in a thread; run() repeats a failed upload and raises its error."""
        threading.Thread(target=self._warm, name="spark-warming", daemon=True).start()

    def last_run(self) -> JobRun | None:
        """Return the newest run of this thread, with its last known state."""
        last: JobRun | None = getattr(self._thread, "last", None)
        return last

    def cancel(self) -> None:
        """Cancel the runs of all threads at their next poll, and also runs that are started later."""
        self._cancelled.set()

    def require_alive(self) -> None:
        """Do nothing: each job has its own Spark application, not one in this process."""

    def stop(self) -> None:
        """Do nothing: this process has no Spark session."""

    @abstractmethod
    def _start(self, submission: Submission) -> JobRun:
        """Start the run."""

    @abstractmethod
    def refreshed(self, run: JobRun) -> JobRun:
        """Return the run with its current state."""

    @abstractmethod
    def cancel_run(self, run: JobRun) -> None:
        """Request the cancellation of the run."""

    @abstractmethod
    def is_final(self, state: str) -> bool:
        """Return whether this state is final."""

    @abstractmethod
    def _has_succeeded(self, state: str) -> bool:
        """Return whether the program ended with exit code 0."""

    @abstractmethod
    def label(self, run: JobRun) -> str:
        """Return the run's description for errors: its kind, its id, and its cluster or application."""

    def with_retries(self, call: Callable[[], R], idempotent: bool = True) -> R:
        """Retry a call that is throttled or, if it is idempotent, not answered, for up to patience_seconds."""

        def transient(error: BaseException) -> bool:
            throttled = isinstance(error, AwsRequestFailed) and error.code in THROTTLED
            return throttled or (idempotent and isinstance(error, Unreachable))

        repeated = Retrying(
            retry=retry_if_exception(transient),
            stop=stop_after_delay(self.patience_seconds),
            wait=wait_random_exponential(multiplier=self.poll_seconds / 10, max=6 * self.poll_seconds),
            reraise=True,
        )
        return repeated(call)

    def _warm(self) -> None:
        try:
            self._code()
        except Exception:  # noqa: BLE001 - run() raises it
            _log.debug("Cannot upload the jobs' code before the first job", exc_info=True)

    def _code(self) -> Code:
        with self._lock:
            if self._uploaded is None:
                self._uploaded = self.code.upload(self.files)
            return self._uploaded

    def open_session(self, prefix: str) -> JobRun:
        """Start a run of jobs/remote/session.py with the objects below `prefix`."""
        arguments = ("session", "--prefix", self.files.uri(prefix))
        return self._start(self._submission("session", str(uuid4()), arguments, is_session=True))

    def _submission(self, job: str, run_id: str, arguments: Sequence[str], is_session: bool = False) -> Submission:
        settings = {**properties_files.read(self.properties), **self.settings}
        options = ("--region", self.region, *arguments)
        return Submission(job, run_id, self._code(), options, settings, is_session)

    def _ended(self, run: JobRun) -> JobRun:
        def current() -> JobRun:
            if self._cancelled.is_set():
                raise JobFailed(
                    f"Cannot complete {self.label(run)}: it was cancelled because its caller was interrupted.",
                    "Run it again.",
                )
            last: JobRun = self.with_retries(lambda: self.refreshed(run))
            self._thread.last = last
            return last

        return until(
            current,
            lambda found: self.is_final(found.state),
            seconds=self.run_seconds,
            what=f"{self.label(run)} to end",
            state=lambda found: found.state,
            hint=self.hint,
            pause_seconds=self.poll_seconds,
        )

    def _give_up(self, run: JobRun, why: BaseException) -> None:
        """Cancel the run; if that fails, add a note to the error that is being raised."""
        try:
            self.cancel_run(run)
        except Exception as error:  # noqa: BLE001 - the original error is raised, with this note
            why.add_note(f"Cannot cancel {self.label(run)}, which may still run: {error}")
        else:
            why.add_note(f"The cancellation of {self.label(run)} was requested.")

    def _report(self, job: Callable[..., Any], run: JobRun, name: str) -> Any:  # noqa: ANN401
        text = self.files.read(name)
        error = None if text is None else self.texts.error(text.decode())
        if text is not None and error is None and self._has_succeeded(run.state):
            return self.texts.report(job, text.decode())
        reason = (run.reason or "EMR gives no reason").rstrip(". ")
        message = f"Cannot use the result of {self.label(run)}: it ended as {run.state}: {reason}"
        if text is None:
            message += f". It wrote no report to {self.files.uri(name)}"
        elif error is None:
            message += f". According to its report at {self.files.uri(name)}, its work is complete"
        pages = "".join(f" {page}" for page in (run.log_url, run.console_url) if page)
        failure = JobFailed(f"{message}.", f"Read its log in {run.logs}, some minutes after the end.{pages}")
        if error is None:
            raise failure
        raise error from failure
