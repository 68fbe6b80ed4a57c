"""A separate stack on which the demo has run, for programs that measure the whole pipeline."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg2.extensions import make_dsn

from benchmarks.measures.processes import run
from cdc_lake.instance import dagster_home
from cdc_lake.profile import resolved


@contextmanager
def running_demo(home: str | None = None) -> Iterator[Path]:
    """Run the demo on a new stack, or use the stack in `home` as it is; yield the state folder.

    Until the end of the block, the process's environment refers to the stack and to its Dagster home, because runs that
    start in a temporary one would not be found. Raises CalledProcessError if the demo fails.
    """
    before = dict(os.environ)
    try:
        if home is None:
            with _new_demo() as used:
                yield _use(used)
        else:
            yield _use(Path(home))
    finally:
        os.environ.clear()
        os.environ.update(before)


def source_dsn() -> str:
    """Return the connection string of the database that the demo loaded its sample into."""
    at = resolved()["postgres"]
    return make_dsn(host=at.host, port=at.port, user=at.user, password=at.password, dbname="devdb")


@contextmanager
def _new_demo() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL's user needs access to the subfolder
        used = Path(folder) / "home"
        os.environ["CDC_LAKE_HOME"] = str(used)
        try:
            run("cdc-lake", "demo", "--json")
            yield used
        finally:
            run("cdc-lake", "down")


def _use(home: Path) -> Path:
    os.environ["CDC_LAKE_HOME"] = str(home)
    os.environ["DAGSTER_HOME"] = str(dagster_home())
    return home
