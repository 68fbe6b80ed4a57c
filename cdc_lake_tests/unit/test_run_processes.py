"""The processes of runs are forks of one process that has imported the definitions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CODE_SERVER = """
import json, multiprocessing, os, sys

def run(queue):
    queue.put((os.getpid(), os.getppid(), "cdc_lake.definitions" in sys.modules))

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


def test_runs_are_forks_of_a_process_with_the_modules(tmp_path: Path) -> None:
    script = tmp_path / "code_server.py"
    script.write_text(CODE_SERVER)
    found = json.loads(subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout)
    (first, parent, imported), (second, same, again) = found["runs"]
    assert first != second
    assert parent == same != found["server"]
    assert (imported, again, found["exit code"]) == (True, True, 0)
