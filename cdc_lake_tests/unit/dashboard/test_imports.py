"""The package is for whoever can run SQL: it brings no orchestrator, no engine and no charts' library with it."""

from __future__ import annotations

import subprocess
import sys


def test_nothing_heavy_is_imported() -> None:
    names = "{'dagster', 'pyspark', 'pyathena', 'altair', 'vl_convert'}"
    script = f"import sys, cdc_lake.dashboard; print({names} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
