"""The demo of each pipeline: how its sample is loaded and removed, and its example changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cdc_lake.demo import moma, northwind, pagila, pagila_query
from cdc_lake.demo.demo_run import ExampleChange
from cdc_lake.samples import server, table_sample
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.moma import MOMA
from cdc_lake.samples.northwind import loader
from cdc_lake.samples.pagila import PAGILA, source_changes
from cdc_lake.samples.sample_tables import no_progress
from cdc_lake.samples.table_sample import TableSample


@dataclass(frozen=True)
class UserRows:
    """What to load instead of generated rows: the SQL scripts of a folder, or a file for each table."""

    sql_dir: Path | None = None
    files: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class PipelineDemo:
    """The parts of a demo that depend on the pipeline."""

    title: str
    """The sample's name, for people."""
    prepare: Callable[[ConnectionParameters], object]
    """Creates the sample's database, if it is missing."""
    unload: Callable[[ConnectionParameters], object]
    """Removes the sample, if it is loaded."""
    load: Callable[[ConnectionParameters, UserRows], Mapping[str, int]]
    """Loads the sample with generated rows or the user's; returns the number of rows of each table."""
    stories: Mapping[str, tuple[str, ExampleChange]]
    """The example changes by name: a description, and the function. They need the sample's own rows."""
    verify: bool
    """Whether the last step compares source and lake row by row."""
    hint: Callable[[Mapping[str, Any]], str]
    """Returns the command to try next, given the summary."""


def _unload_northwind(parameters: ConnectionParameters) -> None:
    with closing(parameters.connect()) as connection:
        loader.unload(connection)


def _load_northwind(parameters: ConnectionParameters, given: UserRows) -> Mapping[str, int]:
    report = loader.load(parameters, given.sql_dir)
    if report.own_outbox:
        raise LoadError(
            f"Cannot run the demo with the scripts in {given.sql_dir}: they create their own outbox, but "
            "the demo needs the sample's outbox, which also contains deletes. Leave out the script that creates "
            f"{loader.OUTBOX}, or load the scripts with `cdc-lake load --sql-dir` and capture "
            "them with another pipeline."
        )
    return dict(report.tables)


def _load_moma(parameters: ConnectionParameters, given: UserRows) -> Mapping[str, int]:
    if given.sql_dir is not None:
        raise LoadError("Cannot load SQL scripts as the MoMA sample: leave out --sql-dir.")
    return dict(table_sample.load(MOMA, parameters, no_progress, files=given.files).tables)


def _load_pagila(parameters: ConnectionParameters, given: UserRows) -> Mapping[str, int]:
    return dict(table_sample.load(PAGILA, parameters, no_progress, sql_dir=given.sql_dir).tables)


def _load_polled_pagila(parameters: ConnectionParameters, given: UserRows) -> Mapping[str, int]:
    rows = _load_pagila(parameters, given)
    with closing(parameters.connect()) as connection:
        source_changes.add_poll_indexes(connection)
    return rows


def _moma_hint(summary: Mapping[str, Any]) -> str:
    """Return a query of an earlier state of the changed artist; without the example changes, a count of artists."""
    if "changed" not in summary["stories"]:
        sql = "SELECT nationality, count(*) AS artists FROM moma_cow.artists_current GROUP BY 1 ORDER BY 2 DESC LIMIT 5"
        return f'cdc-lake query "{sql}"'
    instant = summary["stories"]["changed"]["instants"]["mor"][0]
    sql = "SELECT * FROM moma_mor.artists_rt WHERE artist_id = 441"
    return f'cdc-lake query --as-of {instant} "{sql}"'


def _of_tables(
    sample: TableSample,
    title: str,
    load: Callable[[ConnectionParameters, UserRows], Mapping[str, int]],
    stories: Mapping[str, tuple[str, ExampleChange]],
    hint: Callable[[Mapping[str, Any]], str],
) -> PipelineDemo:
    """Return the demo of a sample that is a set of tables in a database of its own, which the last step compares."""
    unload = partial(table_sample.unload, sample)
    return PipelineDemo(title, server.ensure_database, unload, load, stories, verify=True, hint=hint)


DEMOS: Mapping[str, PipelineDemo] = {
    "northwind": PipelineDemo(
        title="Northwind",
        prepare=lambda _: None,  # the database exists already, on the local stack and on AWS
        unload=_unload_northwind,
        load=_load_northwind,
        stories={
            "shipped": ("an order is shipped", northwind.ship),
            "inserted": ("an order is inserted", northwind.insert),
            "deleted": ("an order is deleted", northwind.delete),
        },
        verify=False,
        hint=lambda _: 'cdc-lake query "SELECT * FROM order_items LIMIT 5"',
    ),
    "moma": _of_tables(
        MOMA,
        "MoMA",
        _load_moma,
        {
            "redated": ("the year of an artwork is changed", moma.change_year),
            "changed": ("an artist is updated five times and deleted", moma.change_artist),
        },
        _moma_hint,
    ),
    "pagila": _of_tables(
        PAGILA,
        "Pagila",
        _load_pagila,
        {
            "recategorized": ("a category is inserted and assigned to a film", pagila.change_category),
            "rerated": ("rating and rental rate of three films are changed", pagila.update_films),
            "rekeyed": ("an actor's film, which is part of the key, is changed", pagila.change_key),
            "deleted": ("a film is deleted", pagila.delete_film),
        },
        lambda _: "cdc-lake query \"SELECT * FROM pagila_files.film_refined WHERE rating = 'NC-17' LIMIT 5\"",
    ),
    "pagila_query": _of_tables(
        PAGILA,
        "Pagila by polling",
        _load_polled_pagila,
        {
            "updated": ("an address is updated twice", pagila_query.update_twice),
            "moved": ("a country and a city are inserted, and the address moves there", pagila_query.move),
            "renamed": ("a district is renamed", pagila_query.rename_district),
            "deleted": ("an address is deleted, and the lake is reconciled", pagila_query.delete),
        },
        lambda _: 'cdc-lake query "SELECT * FROM pagila_query_files.addresses_by_country LIMIT 5"',
    ),
}
