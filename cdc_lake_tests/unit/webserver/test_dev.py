"""`dagster dev` with our web server: the processes that it starts.

It uses dagster._cli.dev.open_ipc_subprocess, which is no public part of Dagster: this test names it.
"""

from __future__ import annotations

import inspect
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from dagster._cli import dev


def test_the_web_server_is_ours_and_the_daemon_dagsters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "open_ipc_subprocess(\n" in inspect.getsource(dev.dev_command_impl)
    started: list[list[str]] = []

    class Ended:
        returncode = 3

        def poll(self) -> int:
            return self.returncode

        def wait(self, timeout: float) -> int:
            return int(timeout) and self.returncode

    def opened(command: list[str], **_: Any) -> Ended:  # noqa: ANN401
        started.append(command)
        return Ended()

    monkeypatch.setattr(dev, "open_ipc_subprocess", opened)
    monkeypatch.setattr(dev, "_CHECK_SUBPROCESS_INTERVAL", 0)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["dagster", "dev", "--empty-workspace", "--port", "3456"])
    with pytest.raises(SystemExit):
        runpy.run_module("cdc_lake.webserver.dev", run_name="__main__")
    modules = [command[command.index("-m") + 1] for command in started]
    assert modules == ["cdc_lake.webserver", "dagster._daemon"]
    assert started[0][started[0].index("--port") + 1] == "3456"
