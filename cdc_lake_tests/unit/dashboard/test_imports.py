"""The package is for whoever can run SQL: it brings no orchestrator and no engine with it."""

from __future__ import annotations

import subprocess
import sys


def test_dagster_and_spark_are_not_imported() -> None:
    script = "import sys, cdc_lake.dashboard; print({'dagster', 'pyspark', 'pyathena'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
