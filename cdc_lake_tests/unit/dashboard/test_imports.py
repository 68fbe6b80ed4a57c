"""Importing cdc_lake.dashboard is fast: it imports no orchestrator, no engine and no charting library."""

from __future__ import annotations

import subprocess
import sys


def test_the_import_loads_no_large_package() -> None:
    names = "{'dagster', 'pyspark', 'pyathena', 'jinja2', 'vl_convert'}"
    script = f"import sys, cdc_lake.dashboard; print({names} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
