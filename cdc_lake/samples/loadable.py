"""The samples by name, with their properties for `cdc-lake load`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cdc_lake.samples import table_sample
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.load_report import LoadReport
from cdc_lake.samples.moma import MOMA
from cdc_lake.samples.northwind import loader
from cdc_lake.samples.pagila import PAGILA
from cdc_lake.samples.sample_tables import Progress
from cdc_lake.samples.table_sample import TableSample

LoadSample = Callable[[ConnectionParameters, Path | None, Mapping[str, Path], Progress], LoadReport]
"""Loads generated rows, or scripts of a folder, or files by table. Raises LoadError."""


@dataclass(frozen=True)
class LoadableSample:
    """A sample as `cdc-lake load` shows and loads it."""

    database: str
    """The default database."""
    own_database: bool
    """Whether the load creates and uses this database on the profile's server too; otherwise the profile's database."""
    creates: str
    """A phrase that lists what the load creates."""
    load: LoadSample
    schema: str | None = None
    """The schema, if it contains only the sample."""
    publication: str | None = None
    """The publication that the load creates."""
    scripts: bool = False
    """Whether SQL scripts can be loaded instead of generated rows."""
    files: bool = False
    """Whether a file for each table can be loaded instead of generated rows."""


def _northwind(
    parameters: ConnectionParameters, sql_dir: Path | None, _files: Mapping[str, Path], progress: Progress
) -> LoadReport:
    return loader.load(parameters, sql_dir, progress)


def _tables(sample: TableSample) -> LoadableSample:
    def load(
        parameters: ConnectionParameters, sql_dir: Path | None, files: Mapping[str, Path], progress: Progress
    ) -> LoadReport:
        return table_sample.load(sample, parameters, progress, sql_dir=sql_dir, files=files)

    return LoadableSample(
        database=sample.database,
        own_database=True,
        creates=f"tables {', '.join(sample.tables)}",
        load=load,
        scripts=sample.scripts,
        files=sample.delimiter is not None,
    )


SAMPLES: dict[str, LoadableSample] = {
    "northwind": LoadableSample(
        database="devdb",
        own_database=False,
        creates=f"schema {loader.SCHEMA}",
        load=_northwind,
        schema=loader.SCHEMA,
        publication=loader.PUBLICATION,
        scripts=True,
    ),
    "moma": _tables(MOMA),
    "pagila": _tables(PAGILA),
}
