"""Hudi names commits in UTC in every time zone of the JVM; a table in local time is refused until it is migrated."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import LocalTimeError, TableAheadError
from cdc_lake.contract.table import instants, timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.maintenance import purge
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.no_spark import NoSpark


@pytest.fixture
def st_johns(job_engines: Engines) -> Iterator[JVMView]:
    """Set the JVM's time zone to Newfoundland during a test: 3.5 hours behind UTC, 2.5 in summer."""
    jvm = job_engines.spark._jvm
    assert jvm is not None
    before = jvm.java.util.TimeZone.getDefault()
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("America/St_Johns"))
    yield jvm
    jvm.java.util.TimeZone.setDefault(before)


def rows(table: LakeTable) -> dict[object, object]:
    """Return the notes by key; both readers must agree."""
    found = {row["id"]: row["note"] for row in table.by_hudi_rs()}
    assert found == {row["id"]: row["note"] for row in table.by_spark()}
    return found


def newest(table: LakeTable) -> timeline.Commit:
    """Return the table's newest commit."""
    commit = timeline.last_commit(table.store, table.spec.prefix)
    assert commit is not None
    return commit


def test_commits_are_named_in_utc_and_increase(new_table: NewTable, st_johns: JVMView) -> None:
    table = new_table(COLUMNS, KEY)
    # In local time, Hudi would wait in a loop, for hours, until the clock has passed the newest instant of this JVM.
    assert table.spec.hudi_table().options()[instants.ZONE] == "UTC"
    began = instants.utc_now() - timedelta(seconds=1)
    table.deliver([event(1, "c", 100, note="first")])
    table.upsert()
    first = newest(table).instant
    table.deliver([event(1, "u", 200, note="second")])
    table.upsert()
    assert began < instants.time_of(first) < instants.time_of(newest(table).instant) < instants.utc_now()
    assert rows(table) == {1: "second"}
    # Daylight saving ends at 04:30 UTC: local names would go back at that time.
    generator = st_johns.org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator
    zones = st_johns.org.apache.hudi.common.model.HoodieTimelineTimeZone
    moments = [datetime(2026, 11, 1, 4, minute, tzinfo=UTC) for minute in (29, 31)]

    def named() -> list[str]:
        dates = [st_johns.java.util.Date(int(moment.timestamp() * 1000)) for moment in moments]
        return [generator.formatDateBasedOnTimeZone(date) for date in dates]

    assert named() == ["20261101042900000", "20261101043100000"]
    generator.setCommitTimeZone(zones.LOCAL)
    assert named() == ["20261101015900000", "20261101010100000"]
    generator.setCommitTimeZone(zones.UTC)


def test_a_table_in_local_time_is_refused_until_it_is_migrated(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    table.deliver([event(1, "c", 100, note="first")])
    table.upsert()
    key = f"{table.spec.prefix}.hoodie/hoodie.properties"
    stored = table.store.get(key)
    assert stored is not None
    assert stored.body.count(b"hoodie.table.timeline.timezone=UTC\n") == 1
    table.store.replace(key, stored.body.replace(b"timezone=UTC", b"timezone=LOCAL"), stored.etag)
    table.deliver([event(1, "u", 200, note="second")])
    before = newest(table)
    nothing = cast(SparkSession, NoSpark())
    for write in (
        lambda: upsert.run(nothing, table.spec),
        lambda: purge.run(nothing, PurgeSpec(table.spec, 1)),
    ):
        with pytest.raises(LocalTimeError, match=f"Run `cdc-lake migrate {table.name}`"):
            write()
    assert newest(table) == before
    assert rows(table) == {1: "first"}
    instants.set_utc(table.store, table.spec.prefix)
    assert table.upsert().manifests == 1
    assert rows(table) == {1: "second"}


def test_a_table_with_a_commit_ahead_of_the_clock_is_refused(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    table.deliver([event(1, "c", 100)])
    table.upsert()
    table.deliver([event(2, "c", 200)])
    ahead = f"{table.spec.prefix}.hoodie/{instants.utc_now() + timedelta(hours=1):%Y%m%d%H%M%S}000.commit.requested"
    table.store.put_new(ahead, b"")
    with pytest.raises(TableAheadError, match=r"s later than this machine's clock"):
        upsert.run(cast(SparkSession, NoSpark()), table.spec)
    table.store.delete([ahead])
    assert table.upsert().manifests == 1
