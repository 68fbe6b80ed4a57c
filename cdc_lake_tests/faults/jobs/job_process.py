"""A process that runs one job on Spark, which a test kills with its JVM: `python -m … HOME SCRATCH CALL`.

HOME is the stack's state folder, SCRATCH a folder for Spark, CALL a file with a pickled Call.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.hudi.writer import HudiTable
from cdc_lake_tests.integration.jobs.engines import running_spark
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import REGION
from resources.object_store import ObjectStore

LIMIT_SECONDS = 240.0


@dataclass(frozen=True)
class Call:
    """A job, its spec, the location of the bucket, and Hudi options that take precedence over the product's."""

    job: Callable[[Any, Any], Any]
    spec: Any
    location: S3Location
    options: Mapping[str, str]


class JobProcess:
    """The process, with a group of its own, so that its JVM is killed with it."""

    def __init__(self, home: Path, scratch: Path, call: Call) -> None:
        file = scratch / "call.pickle"
        file.write_bytes(pickle.dumps(call))
        self._log = (scratch / "output.log").open("w+b")
        command = [sys.executable, "-m", __name__, str(home), str(scratch), str(file)]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log, start_new_session=True)

    def kill(self) -> None:
        """Kill the process and its JVM, if they still run."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the end and return the exit code, negative for a signal."""
        return self._process.wait(LIMIT_SECONDS)

    def output(self) -> str:
        """Return what the process has printed."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def close(self) -> None:
        """End what still runs."""
        self.kill()
        self._process.wait(LIMIT_SECONDS)
        self._log.close()


def use_options(options: Mapping[str, str]) -> Callable[[HudiTable], dict[str, str]]:
    """Return a replacement of HudiTable.options(), in which these options take precedence."""
    own = HudiTable.options
    return lambda table: {**own(table), **options}


def main(home: str, scratch: str, file: str) -> None:
    """Run the call of a file."""
    call: Call = pickle.loads(Path(file).read_bytes())  # noqa: S301 - the test has written it
    HudiTable.options = use_options(call.options)  # type: ignore[method-assign,assignment]
    store = ObjectStore(
        bucket=call.location.bucket,
        region=call.location.region or REGION,
        endpoint_url=call.location.endpoint_url,
        access_key=call.location.access_key,
        secret_key=call.location.secret_key,
    )
    with running_spark(load_endpoints(Path(home)), store, Path(scratch)) as spark:
        print(call.job(spark, call.spec))


if __name__ == "__main__":
    main(*sys.argv[1:])
