"""Earlier states of a table, and what changed: an artist's five updates and delete, in both types of tables."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdc_lake import reading
from cdc_lake.cli.data import spark_query
from cdc_lake.contract.errors import ContractError
from cdc_lake.jobs.hudi import writer
from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake.jobs.maintenance import clean, compact
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spec.table import TableSpec
from cdc_lake.pipeline.spec.target import TargetSpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn

ARTIST = 441


def pipeline_table(table: LakeTable, table_type: TableType) -> PipelineTable:
    """Return the table as a pipeline defines it."""
    target = TargetSpec(name="lake", database=table.name.replace("-", "_"), table_type=table_type)
    spec = load("northwind").spec.model_copy(update={"name": table.name, "targets": [target]})
    return PipelineTable(Pipeline(spec, Path(table.name)), TableSpec(name="orders", key=list(KEY)), target)


@pytest.mark.parametrize("table_type", drawn(("cow", "mor"), in_ci=1))
def test_each_state_of_an_artist_can_be_read(
    new_table: NewTable, table_type: TableType, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(COLUMNS, KEY)
    spec, pipeline = replace(table.spec, table_type=table_type), pipeline_table(table, table_type)
    spark, where = table.engines.spark, table.engines.location

    def state(as_of: str | None = None) -> tuple[object, object]:
        [row] = reading.rows(spark, pipeline, where, as_of).where(f"id = {ARTIST}").collect()
        return row["note"], row["__deleted"]

    def changed(since: str, until: str | None = None) -> dict[int, object]:
        return {row["id"]: row["note"] for row in reading.changes(spark, pipeline, where, since, until).collect()}

    instants = []
    for number in range(6):
        # Without inserts after the first commit: Hudi would write them, and the updates, into a base file.
        others = range(1000, 1006) if number == 0 else [1000 + number]
        changes = [event(key, "u", 100 * number + key, note=f"by commit {number}") for key in others]
        op = "d" if number == 5 else "u"
        table.deliver([event(ARTIST, op, 100 * number + 1, note=f"state {number}"), *changes])
        commit = table.upsert(spec).commit
        assert commit is not None
        instants.append(commit.instant)
    expected = [(f"state {number}", number == 5) for number in range(6)]
    assert [state(instant) for instant in instants] == expected
    assert state() == expected[-1]
    assert changed(instants[3]) == {ARTIST: "state 5", 1004: "by commit 4", 1005: "by commit 5"}
    assert changed(instants[1], instants[2]) == {ARTIST: "state 2", 1002: "by commit 2"}
    assert changed("2020-01-01", instants[0]) == {
        ARTIST: "state 0",
        **dict.fromkeys(range(1000, 1006), "by commit 0"),
    }
    if table_type == "mor":
        assert compact.run(spark, compact.CompactSpec(spec)).commit is not None
        assert [state(instant) for instant in instants] == expected
        assert changed(instants[3]) == {ARTIST: "state 5", 1004: "by commit 4", 1005: "by commit 5"}

    # States that are older than the table's history are cleaned, and refused.
    table.make_older(timedelta(hours=spec.history_hours, minutes=1))
    monkeypatch.setattr(writer, "CLEAN_SECONDS", 0.0)  # as if the process had not cleaned the table just now
    for number in (6, 7):
        table.deliver([event(ARTIST, "u", 100 * number + 1, note=f"state {number}")])
        table.upsert(spec)
        if table_type == "mor":
            compact.run(spark, compact.CompactSpec(spec))
    with pytest.raises(ContractError, match=r"the oldest state of the table .* is that of commit \d{17}") as refused:
        state(f"{datetime.now(UTC) - timedelta(minutes=30):%Y-%m-%dT%H:%M:%S}")
    oldest = str(refused.value).partition("commit ")[2][:17]
    assert state(oldest) == ("state 6", False)
    assert state() == ("state 7", False)

    # A table that is not written any more is cleaned by the service.
    table.make_older(timedelta(hours=spec.history_hours, minutes=1))
    report = clean.run(spark, clean.CleanSpec(spec))
    assert report.files_deleted > 0
    assert report.bytes_deleted > 0
    with pytest.raises(ContractError, match="the oldest state of the table"):
        state(f"{datetime.now(UTC) - timedelta(minutes=90):%Y-%m-%dT%H:%M:%S}")
    assert state() == ("state 7", False)
    assert clean.run(spark, clean.CleanSpec(spec)).files_deleted == 0


def test_times_are_shown_in_utc(job_engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark converts timestamps to the time zone of the process; two columns of a query can have one name."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        rows = job_engines.spark.sql(
            "SELECT timestamp'2026-07-01 12:00:00Z' AS at, timestamp'9999-12-31 23:59:59Z' AS at, 1 AS n"
        )
        [row] = spark_query._in_utc(rows).collect()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert tuple(row) == (datetime(2026, 7, 1, 12), datetime(9999, 12, 31, 23, 59, 59), 1)
