"""Run `dagster dev` with cdc_lake.webserver as its web server: `python -m cdc_lake.webserver.dev dev ARGUMENT…`.

`dagster dev` starts `python -m dagster_webserver` and has no option to start another server. This module therefore
wraps the function that starts its processes; the daemon and the code server are not changed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from subprocess import Popen
from typing import Any

from dagster._cli import dev, main

from cdc_lake.instance import instance, limit_comparisons
from cdc_lake.run_processes import SPARK_SERVER_OWNER

_start = dev.open_ipc_subprocess  # type: ignore[attr-defined]


def start(command: Sequence[str], **options: Any) -> Popen[Any]:  # noqa: ANN401 - Popen's
    """Start a process of `dagster dev`, with cdc_lake.webserver as the web server."""
    process: Popen[Any] = _start(
        ["cdc_lake.webserver" if part == "dagster_webserver" else part for part in command], **options
    )
    return process


if __name__ == "__main__":
    os.environ[SPARK_SERVER_OWNER] = str(os.getpid())
    with instance() as dagster:
        limit_comparisons(dagster)
    dev.open_ipc_subprocess = start  # type: ignore[attr-defined,assignment]
    main()  # type: ignore[no-untyped-call]
