"""A separate stack on which the demo has run, for programs that measure the whole pipeline."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measures.processes import run
from cdc_lake.instance import dagster_home


@contextmanager
def running_demo(home: str | None = None) -> Iterator[Path]:
    """Run the demo on a new stack, or use the stack in `home` as it is; yield the state folder.

    The process's environment refers to the stack and to its Dagster home: runs that start in a temporary one would not
    be found.
    """
    if home is not None:
        yield _use(Path(home))
        return
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL's user needs access to the subfolder
        used = Path(folder) / "home"
        os.environ["CDC_LAKE_HOME"] = str(used)
        try:
            run("cdc-lake", "demo", "--json")
            yield _use(used)
        finally:
            run("cdc-lake", "down")


def _use(home: Path) -> Path:
    os.environ["CDC_LAKE_HOME"] = str(home)
    os.environ["DAGSTER_HOME"] = str(dagster_home())
    return home
