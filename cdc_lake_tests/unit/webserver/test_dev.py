"""`dagster dev` with our web server: the processes that it starts.

It uses dagster._cli.dev.open_ipc_subprocess, a private function of Dagster; this test fails when it changes.
"""

from __future__ import annotations

import inspect
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from dagster._cli import dev

from cdc_lake.run_processes import SPARK_SERVER_OWNER


def test_dev_starts_our_web_server_and_dagsters_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "open_ipc_subprocess(\n" in inspect.getsource(dev.dev_command_impl)
    started: list[list[str]] = []

    class Ended:
        returncode = 3

        def poll(self) -> int:
            return self.returncode

        def wait(self, timeout: float) -> int:
            return int(timeout) and self.returncode

    def record_start(command: list[str], **_: Any) -> Ended:  # noqa: ANN401
        started.append(command)
        return Ended()

    monkeypatch.setattr(dev, "open_ipc_subprocess", record_start)
    monkeypatch.setattr(dev, "_CHECK_SUBPROCESS_INTERVAL", 0)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv(SPARK_SERVER_OWNER, "")
    monkeypatch.setattr(sys, "argv", ["dagster", "dev", "--empty-workspace", "--port", "3456"])
    with pytest.raises(SystemExit):
        runpy.run_module("cdc_lake.webserver.dev", run_name="__main__")
    assert os.environ[SPARK_SERVER_OWNER] == str(os.getpid())
    modules = [command[command.index("-m") + 1] for command in started]
    assert modules == ["cdc_lake.webserver", "dagster._daemon"]
    assert started[0][started[0].index("--port") + 1] == "3456"
