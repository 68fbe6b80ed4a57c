"""Importing the local profile, which most commands do, loads no package that they do not need."""

from __future__ import annotations

import subprocess
import sys


def test_the_import_loads_no_engine() -> None:
    names = "{'pyspark', 'pyarrow', 'numpy', 'sqlglot'}"
    script = f"import sys, cdc_lake.profile_local; print({names} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
