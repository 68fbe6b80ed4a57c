"""The processes of runs are forks of one process that has built the definitions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from cdc_lake import definitions

CODE_SERVER = """
import json, multiprocessing, os, sys

def run(queue):
    imported = "cdc_lake.definitions" in sys.modules
    from cdc_lake import definitions

    queue.put((os.getpid(), os.getppid(), imported, definitions.defs() is definitions.defs()))

if __name__ == "__main__":
    from cdc_lake.run_processes import fork_runs

    context = multiprocessing.get_context("spawn")  # as Dagster's server does, before it loads the definitions
    fork_runs()
    found = []
    for _ in range(2):
        queue = context.Queue()
        process = context.Process(target=run, args=(queue,))
        process.start()
        found.append(queue.get(timeout=60))
        process.join()
    print(json.dumps({"server": os.getpid(), "runs": found, "exit code": process.exitcode}))
"""


def test_runs_are_forks_of_a_process_with_the_definitions(tmp_path: Path) -> None:
    script = tmp_path / "code_server.py"
    script.write_text(CODE_SERVER)
    found = json.loads(subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout)
    (first, parent, *built), (second, same, *again) = found["runs"]
    assert first != second
    assert parent == same != found["server"]
    assert (built, again, found["exit code"]) == ([True, True], [True, True], 0)


def test_definitions_are_built_again_after_a_file_has_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built = iter(range(3))
    monkeypatch.setattr(definitions, "FOLDER", tmp_path)
    monkeypatch.setattr(definitions, "_build", lambda: dg.Definitions(metadata={"build": next(built)}))
    monkeypatch.setattr(definitions, "_prebuilt", None)
    (tmp_path / "defs.yaml").write_text("name: shop")
    definitions.prebuild()
    assert [definitions.defs().metadata["build"].value for _ in range(2)] == [0, 0]
    (tmp_path / "defs.yaml").write_text("name: store")
    assert [definitions.defs().metadata["build"].value for _ in range(2)] == [1, 2]
