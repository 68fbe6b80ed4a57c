"""Engines with a Spark session that has our settings and can also write the peers' tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from benchmarks.peers.session import settings
from benchmarks.peers.table_formats import PEERS
from cdc_lake_tests.integration.jobs.engines import BUCKET, Engines, SparkAdditions, running_engines
from infra.artifacts import artifacts
from infra.local.progress_display import ConsoleSetup

FOLDER = f"s3a://{BUCKET}/peers"


@contextmanager
def running_engines_with_peers(components: Sequence[str] = ("s3",)) -> Iterator[Engines]:
    """Run components of a stack and Spark in a temporary folder; fetch the peers' jars if they are missing."""
    fetch_jars()
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL's user needs access to the subfolder
        home, scratch = Path(folder) / "home", Path(folder) / "spark"
        scratch.mkdir()
        own = scratch / "peers.properties"
        lines = settings(set(PEERS.values()), FOLDER).items()
        own.write_text("".join(f"{name} {value}\n" for name, value in lines), encoding="utf-8")
        additions = SparkAdditions([artifacts.jars(artifacts.PEERS)], [own])
        with running_engines(home, scratch, components, additions) as (engines, _):
            yield engines


def fetch_jars(module: str = artifacts.PEERS) -> None:
    """Fetch the jars of peers, by default those of Iceberg and Delta, into the cache folder unless they are there."""
    with ConsoleSetup(Console(stderr=True)) as progress:
        artifacts.ensure([module], progress)
