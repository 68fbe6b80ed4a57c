"""A Spark session that was started in advance is the one that the jobs use, and its process exits without errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

_STARTED_IN_ADVANCE = """
import threading
from cdc_lake.profile import spark

ahead = spark()
ahead.warm()
ahead.warm()
print("meanwhile", [each.name for each in threading.enumerate()].count("spark-warming"), flush=True)
print(ahead.session().range(3).count())
"""
_UNUSED = "from cdc_lake.profile import spark; spark().warm()"


@pytest.mark.usefixtures("chain_stack")
@pytest.mark.parametrize(("script", "lines"), [(_STARTED_IN_ADVANCE, ["meanwhile 1", "3"]), (_UNUSED, [])])
def test_a_session_started_in_advance_is_used_and_exits_without_errors(script: str, lines: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == lines
    assert "Traceback" not in done.stderr
    assert "ERROR" not in done.stderr
