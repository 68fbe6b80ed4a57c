"""Jobs on EMR, whichever way they are started: from a spec to the report or the error that the job left."""

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import dagster as dg
from pydantic import Field, PrivateAttr
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from resources.aws.client import AwsRequestFailed, AwsResource
from resources.aws.errors import THROTTLED
from resources.errors import JobFailed, Unreachable
from resources.spark import properties_files
from resources.spark.emr_code import Code, EmrCode
from resources.spark.emr_job_files import JobFiles
from resources.spark.job_interface import JobRun, JobTexts
from resources.waiting import until

S = TypeVar("S")
R = TypeVar("R")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Submission:
    """What is asked of EMR: a job by a name of its own, the code, the program's arguments, and Spark's settings."""

    job: str
    id: str
    code: Code
    arguments: tuple[str, ...]
    settings: Mapping[str, str]

    @property
    def name(self) -> str:
        """What the run is called; no other one is."""
        return f"{self.job}-{self.id}"


class EmrJobs(AwsResource):
    """Spark jobs on EMR (implements job_interface.SparkJobs).

    run() raises what the job raised; JobFailed where it ended without saying why; WaitTimedOut; and Unreachable,
    AccessRefused or AwsRequestFailed where AWS does not comply.
    """

    files: JobFiles
    code: EmrCode
    texts: dg.ResourceDependency[JobTexts]
    properties: list[str] = Field(description="Files with Spark's settings; later ones win.")
    settings: dict[str, str] = Field(
        default={},
        description="More of Spark's settings. `spark.cdc_lake.kafka.<option>` is one of its Kafka source: for MSK with"
        " IAM security.protocol, sasl.mechanism, sasl.jaas.config and sasl.client.callback.handler.class.",
    )
    secrets: dict[str, str] = Field(
        default={}, description="ARNs of secrets in Secrets Manager by what specs call them: source-password."
    )
    poll_seconds: float = Field(default=10.0, gt=0)
    patience_seconds: float = Field(
        default=600.0, gt=0, description="For how long a call is repeated that AWS throttles or does not answer."
    )
    run_seconds: float = Field(default=86_400.0, gt=0, description="How long a job may take, its wait for a place too.")

    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _uploaded: Code | None = PrivateAttr(default=None)
    _last: JobRun | None = PrivateAttr(default=None)

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """Run a job and return its report; it is cancelled where the wait for it ends before it does."""
        name = self.texts.name(job)
        submission = self._submission(name, self.texts.request(job, spec, self.secrets))
        run = self._last = self._start(submission)
        _log.info("%s runs the job %s; its log will be in %s", run.id, name, run.logs)
        try:
            ended = self._ended(run)
        except BaseException as error:  # an interruption, too: nobody waits for the job any more
            self._give_up(run, error)
            raise
        report: R = self._report(job, ended, _report_name(submission))
        return report

    def warm(self) -> None:
        """Upload code and jars beside what the caller goes on with; what fails there fails again in run()."""
        threading.Thread(target=self._warm, name="spark-warming", daemon=True).start()

    def last_run(self) -> JobRun | None:
        """The newest run, with its state as told last."""
        return self._last

    def stop(self) -> None:
        """Nothing: this process keeps nothing of Spark."""

    @abstractmethod
    def _start(self, submission: Submission) -> JobRun:
        """Ask for the run."""

    @abstractmethod
    def _look(self, run: JobRun) -> JobRun:
        """The run as it is now."""

    @abstractmethod
    def _cancel(self, run: JobRun) -> None:
        """Ask for the run's end."""

    @abstractmethod
    def _is_final(self, state: str) -> bool:
        """Whether a run stays in this state."""

    @abstractmethod
    def _has_succeeded(self, state: str) -> bool:
        """Whether the program ended with 0."""

    @abstractmethod
    def _described(self, run: JobRun) -> str:
        """The run in an error: what it is, and where."""

    def patiently(self, call: Callable[[], R], unanswered: bool = True) -> R:
        """Repeat a call that is throttled, or not answered if it may be made twice; with jitter, and not for ever."""

        def transient(error: BaseException) -> bool:
            throttled = isinstance(error, AwsRequestFailed) and error.code in THROTTLED
            return throttled or (unanswered and isinstance(error, Unreachable))

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
        except Exception:  # noqa: BLE001 - run() is told
            _log.debug("The jobs' code could not be uploaded ahead", exc_info=True)

    def _code(self) -> Code:
        with self._lock:
            if self._uploaded is None:
                self._uploaded = self.code.upload(self.files)
            return self._uploaded

    def _submission(self, job: str, request: str) -> Submission:
        run_id = str(uuid4())
        settings = {**properties_files.read(self.properties), **self.settings}
        found = Submission(job, run_id, self._code(), (), settings)
        spec = f"runs/{found.name}/spec.json"
        self.files.put_new(spec, request.encode())
        arguments = ("--spec", self.files.uri(spec), "--report", self.files.uri(_report_name(found)))
        told = ("--job", job, *arguments, "--region", self.region)
        return Submission(job, run_id, found.code, told, settings)

    def _ended(self, run: JobRun) -> JobRun:
        def look() -> JobRun:
            self._last = self.patiently(lambda: self._look(run))
            return self._last

        return until(
            look,
            lambda found: self._is_final(found.state),
            seconds=self.run_seconds,
            what=f"{self._described(run)} to end",
            hint=self.hint,
            pause_seconds=self.poll_seconds,
        )

    def _give_up(self, run: JobRun, why: BaseException) -> None:
        """Cancel the run; where that fails, the error that is under way says so."""
        try:
            self._cancel(run)
        except Exception as error:  # noqa: BLE001 - the cause of giving up is raised, with this beside it
            why.add_note(f"{self._described(run)} could not be cancelled and may still run: {error}")
        else:
            why.add_note(f"{self._described(run)} was asked to end.")

    def _report(self, job: Callable[..., Any], run: JobRun, name: str) -> Any:  # noqa: ANN401
        left = self.files.read(name)
        error = None if left is None else self.texts.error(left.decode())
        if left is not None and error is None and self._has_succeeded(run.state):
            return self.texts.report(job, left.decode())
        said = f"{self._described(run)} ended as {run.state}: {run.reason or 'EMR does not say why'}"
        if left is None:
            said += f". It left nothing at {self.files.uri(name)}"
        elif error is None:
            said += f". Its report is written all the same, at {self.files.uri(name)}: what it did is done"
        pages = "".join(f" {page}" for page in (run.log_url, run.console_url) if page)
        failure = JobFailed(f"{said}.", f"Its log is in {run.logs}, some minutes after the end.{pages}")
        if error is None:
            raise failure
        raise error from failure


def _report_name(submission: Submission) -> str:
    return f"runs/{submission.name}/report.json"
