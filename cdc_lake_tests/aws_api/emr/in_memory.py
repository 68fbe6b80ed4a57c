"""EMR and EMR Serverless with a job that runs in the test's process, for unit tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.remote.session import RequestObjects, serve
from cdc_lake_tests.aws_api.emr.runs import Execute, Run, Runs
from cdc_lake_tests.aws_api.emr.serverless import EmrServerless
from cdc_lake_tests.aws_api.emr.steps import EmrSteps
from cdc_lake_tests.fakes.aws.s3 import MemoryS3, served_s3
from cdc_lake_tests.fakes.server import serving
from infra.local.aws_api.server import Application, Environ, StartResponse

BUCKET = "lake"
LOGS = f"s3://{BUCKET}/logs/"


@dataclass
class Faults:
    """Faults of requests by operation, which is the JSON target or the HTTP method."""

    refused: Counter[str] = field(default_factory=Counter)
    """How many of the next requests are refused with `code`."""
    code: str = "ThrottlingException"
    before_answer: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Called once, when the request has been executed and not yet been answered."""
    requests: list[str] = field(default_factory=list)

    def around(self, application: Application) -> Application:
        """Return the application with the faults in front of it."""

        def faulty(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
            name = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2] or environ["REQUEST_METHOD"]
            self.requests.append(name)
            if self.refused[name] > 0:
                self.refused[name] -= 1
                body = json.dumps({"__type": self.code, "message": "Not now"}).encode()
                code = ("x-amzn-ErrorType", self.code)
                start_response("400 Bad Request", [code, ("Content-Length", str(len(body)))])
                return [body]
            answer = application(environ, start_response)
            self.before_answer.pop(name, lambda: None)()
            return answer

        return faulty


@dataclass(frozen=True)
class Served:
    """Both APIs at a URL, and the object store."""

    url: str
    s3: MemoryS3
    runs: tuple[Runs, Runs]
    faults: Faults

    def all_runs(self) -> list[Run]:
        """Return the runs of both APIs."""
        return [run for each in self.runs for run in each.all.values()]


@contextmanager
def served() -> Iterator[Served]:
    """Serve both APIs and an object store."""
    faults = Faults()
    with served_s3() as s3:
        execute = _job(s3)
        steps, job_runs = Runs(execute, 1), Runs(execute, 1)
        services = {
            "elasticmapreduce": faults.around(EmrSteps(steps, LOGS).service),
            "emr-serverless": faults.around(EmrServerless(job_runs).service),
        }
        with serving(services) as url:
            try:
                yield Served(url, s3, (steps, job_runs), faults)
            finally:
                steps.close()
                job_runs.close()


def _job(s3: MemoryS3) -> Execute:
    """Return a program with the arguments of cdc_lake/jobs/remote/main.py; its spec's `do` says what a job does."""

    def execute(run: Run) -> str:
        _, region, program, *rest = run.job.arguments
        args = dict(zip(rest[::2], rest[1::2], strict=True))
        if program == "session":
            prefix = args["--prefix"].removeprefix(f"s3://{BUCKET}/")
            store = S3Location(BUCKET, s3.url, region, "key", "secret").store()
            serve(RequestObjects(store, prefix), _Session(), run.cancelled)  # type: ignore[arg-type]
            return ""
        spec, report = (args[name].removeprefix("s3://") for name in ("--spec", "--report"))
        match json.loads(s3.objects[spec])["do"]:
            case "sleep":
                run.cancelled.wait(60)
                return "cancelled"
            case "die":
                return "java.lang.OutOfMemoryError: Java heap space"
            case "fail":
                s3.objects[report] = json.dumps({"error": "the table is held"}).encode()
                return "spark-submit ended with 1"
            case text:
                s3.objects[report] = json.dumps({"report": text.upper()}).encode()
                return ""

    return execute


class _Session:
    """A Spark session for jobs that do not use it."""

    @property
    def sparkContext(self) -> _Session:  # noqa: N802 - Spark's name
        return self

    def setLocalProperty(self, name: str, value: str) -> None:  # noqa: N802 - Spark's name
        """Do nothing."""
