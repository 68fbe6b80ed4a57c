"""Serialize calls of jobs on another machine: job names, specs, reports and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from cdc_lake.contract import errors
from cdc_lake.contract.errors import ContractError, NotPortableError
from cdc_lake.jobs import verify
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land
from cdc_lake.jobs.maintenance import clean, cluster, compact, purge, replay, sweep
from cdc_lake.jobs.poll import poll, reconcile
from cdc_lake.jobs.remote import spec_json

Job = Callable[[Any, Any], Any]

JOBS: Mapping[str, Job] = {
    "clean": clean.run,
    "cluster": cluster.run,
    "compact": compact.run,
    "land": land.run,
    "poll": poll.run,
    "purge": purge.run,
    "reconcile": reconcile.run,
    "replay": replay.run,
    "sweep": sweep.run,
    "upsert": upsert.run,
    "verify": verify.run,
}
PACKAGES = (
    *("cdc_lake/__init__.py", "cdc_lake/contract", "cdc_lake/jobs", "resources/__init__.py", "resources/errors.py"),
    *(f"resources/kafka/{name}.py" for name in ("__init__", "client", "msk_iam", "record_batches", "records")),
)
"""The packages and modules of this project that a job imports, to be packed for the machine that runs it."""


class RemoteJobError(Exception):
    """A job on another machine failed with an error that is not a ContractError; the message contains its class."""


class JobTexts:
    """Converts specs of JOBS to text, and parses reports and errors from text."""

    def name(self, job: Job) -> str:
        """Return the job's name for main.py. Raises ValueError for a function that is not in JOBS."""
        for name, known in JOBS.items():
            if known is job:
                return name
        name = f"{getattr(job, '__module__', '')}.{getattr(job, '__qualname__', job)}"
        raise ValueError(f"{name} is not a job that can be started by name. Jobs: {', '.join(JOBS)}")

    def request(self, job: Job, spec: object, secrets: Mapping[str, str]) -> str:
        """Return the spec as text; `secrets` are references to secrets by name. Raises NotPortableError, ValueError."""
        self.name(job)
        return json.dumps(spec_json.encode(spec, secrets))

    def report(self, job: Job, text: str) -> Any:  # noqa: ANN401 - each job has another class
        """Parse the report of a job that succeeded. Raises NotPortableError if the text is not a report of the job."""
        response = _parsed(text)
        if "report" not in response:
            raise NotPortableError(
                f"Cannot read the result of job {self.name(job)}: its response has no report, only "
                f"{', '.join(sorted(response)) or 'an empty object'}. Run the job again."
            )
        return spec_json.decode(get_type_hints(job)["return"], response["report"])

    def error(self, text: str) -> Exception | None:
        """Return the error of a failed job: a ContractError, or RemoteJobError for other errors; None for a report."""
        error = _parsed(text).get("error")
        if error is None:
            return None
        kind = getattr(errors, error["kind"], None)
        if isinstance(kind, type) and issubclass(kind, ContractError):
            return kind(error["message"])
        return RemoteJobError(f"{error['kind']}: {error['message']}")


def spec_of(job: Job, text: str, resolve: Callable[[str], str]) -> Any:  # noqa: ANN401 - each job has another class
    """Parse the spec of a request. Raises NotPortableError, and what `resolve` raises."""
    return spec_json.decode(get_type_hints(job)["spec"], _parsed(text), resolve)


def report_text(report: object) -> str:
    """Return the text that JobTexts.report() parses."""
    return json.dumps({"report": spec_json.encode(report)})


def error_text(error: Exception) -> str:
    """Return the text that JobTexts.error() parses: the error's class name and message."""
    message = error.user_message if isinstance(error, ContractError) else str(error)
    return json.dumps({"error": {"kind": type(error).__name__, "message": message}})


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise NotPortableError(f"Cannot read the text of a job: it is not JSON: {text[:80]!r}") from error
    if not isinstance(found, dict):
        raise NotPortableError(f"Cannot read the text of a job: it is not a JSON object: {text[:80]!r}")
    return found
