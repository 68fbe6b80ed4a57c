"""Spark that was started ahead is the one that the jobs get, and its process ends without a word."""

from __future__ import annotations

import subprocess
import sys

import pytest

_AHEAD = """
import threading
from cdc_lake.profile import spark

ahead = spark()
ahead.warm()
ahead.warm()
print("meanwhile", [each.name for each in threading.enumerate()].count("spark-warming"), flush=True)
print(ahead.session().range(3).count())
"""
_FOR_NOTHING = "from cdc_lake.profile import spark; spark().warm()"


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize(("script", "lines"), [(_AHEAD, ["meanwhile 1", "3"]), (_FOR_NOTHING, [])])
def test_started_ahead(script: str, lines: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == lines
    assert "Traceback" not in done.stderr
    assert "ERROR" not in done.stderr
