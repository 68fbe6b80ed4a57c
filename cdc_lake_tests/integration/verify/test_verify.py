"""Verification of a lake table against its source table: no difference where there is none, every fault reported."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import OmittedColumn
from cdc_lake.contract.schema.value_rules import PLACEHOLDER, ValueRules
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Position
from cdc_lake.jobs.hudi.key_column import KEY_COLUMN
from cdc_lake.jobs.verify import changed_keys
from cdc_lake.jobs.verify.spec import KafkaRange
from cdc_lake_tests.integration.jobs.hudi_table import SOURCE, record_bytes
from cdc_lake_tests.integration.jobs.landing.landing_topic import Topic
from cdc_lake_tests.integration.verify.verified_table import VerifiedTable

TESTS_IN_CI = 3

ROWS = 20_000
FAULTS = ("missing", "extra", "different", "doubled")


def filled(table: VerifiedTable, rows: int = 200) -> VerifiedTable:
    """Write rows to both sides, and return the table."""
    with table.change() as transaction:
        transaction.insert(1, rows)
    table.land_and_apply()
    return table


def test_one_changed_cell_of_many_rows_is_reported(verified_table: VerifiedTable) -> None:
    filled(verified_table, ROWS)
    with verified_table.point() as point:
        clean = verified_table.verify(point)
        assert clean.clean
        assert (clean.source_rows, clean.lake_rows, clean.compared, clean.resolved) == (ROWS, ROWS, ROWS, 0)
        verified_table.tamper("id = 12345", note="")
        found = verified_table.verify(point)
    assert not found.clean
    assert [getattr(found, fault) for fault in FAULTS] == [0, 0, 1, 0]
    (one,) = found.differences
    assert (one.kind, one.key, one.columns) == ("different", {"id": "12345"}, {"note": (None, "")})


SMALLEST: Mapping[int, tuple[str, object, tuple[str, str | None]]] = {
    2: ("note", None, ("note 2", None)),
    3: ("note", "note 3 ", ("note 3", "note 3 ")),
    4: ("qty", 13, ("12", "13")),
    5: ("amount", "0.72", ("0.71", "0.72")),
    6: ("at", "2024-03-01 05:59:59.123457", ("2024-03-01 05:59:59.123456", "2024-03-01 05:59:59.123457")),
}
"""The smallest change of each row by id: column, its value in the lake, and both as shown."""


def test_the_smallest_change_of_a_value_is_reported(verified_table: VerifiedTable) -> None:
    filled(verified_table, 10)
    for key, (column, value, _) in SMALLEST.items():
        verified_table.tamper(f"id = {key}", **{column: value})
    with verified_table.point() as point:
        found = verified_table.verify(point).differences
    assert {one.key["id"]: one.columns for one in found} == {
        str(key): {column: shown} for key, (column, _, shown) in SMALLEST.items()
    }


def test_a_rejected_value_differs_from_a_null_in_the_lake(verified_table: VerifiedTable) -> None:
    filled(verified_table, 10)
    rejected = {"3": ("at", "infinity"), "4": ("at", "-infinity"), "5": ("amount", "NaN")}
    for key, (column, value) in rejected.items():
        with verified_table.source.transaction() as refused:
            refused.set_without_event(int(key), column, value)
        verified_table.tamper(f"id = {key}", **{column: None})
    with verified_table.point() as point:
        found = verified_table.verify(point)
        declared = verified_table.verify(point, rules=ValueRules(infinity="null", nan="null"))
    assert {one.key["id"]: one.columns for one in found.differences} == {
        key: {column: (value, None)} for key, (column, value) in rejected.items()
    }
    assert declared.clean, declared.differences


def test_missing_extra_and_doubled_rows_are_reported(verified_table: VerifiedTable) -> None:
    filled(verified_table)
    with verified_table.source.transaction() as unstreamed:
        unstreamed.insert(1001, 1003)
        unstreamed.delete([7])
    verified_table.double("id = 9")
    verified_table.remove("id = 11")
    with verified_table.point() as point:
        found = verified_table.verify(point)
        few = verified_table.verify(point, limit=2)
    assert [getattr(found, fault) for fault in FAULTS] == [4, 1, 0, 1]
    assert [(one.kind, one.key["id"]) for one in found.differences] == [
        ("extra", "7"),
        ("doubled", "9"),
        ("missing", "11"),
        ("missing", "1001"),
        ("missing", "1002"),
        ("missing", "1003"),
    ]
    assert few.missing == 4
    assert len(few.differences) == 2


def test_deleted_rows_are_not_compared(verified_table: VerifiedTable) -> None:
    filled(verified_table, 20)
    with verified_table.change() as transaction:
        transaction.delete([1, 2, 3])
    verified_table.land_and_apply()
    with verified_table.point() as point:
        found = verified_table.verify(point)
    assert found.clean
    assert (found.source_rows, found.lake_rows, found.compared) == (17, 17, 17)


def test_empty_tables_are_equal(verified_table: VerifiedTable) -> None:
    filled(verified_table, 3)
    with verified_table.change() as transaction:
        transaction.delete([1, 2, 3])
    verified_table.land_and_apply()
    with verified_table.point() as point:
        assert verified_table.verify(point).compared == 0


def test_keys_that_changed_after_the_point_are_compared_with_their_raw_events(verified_table: VerifiedTable) -> None:
    filled(verified_table)
    bases = (None, verified_table.state())
    with verified_table.change() as transaction:
        transaction.update([1, 2], "before the point")
    with ExitStack() as held:
        with verified_table.change() as open_one:
            open_one.update([3, 4], "written before the point, committed after it")
            with verified_table.change() as ended:
                ended.update([5], "begun after that, and ended before the point")
            point = held.enter_context(verified_table.point())
        with verified_table.change() as later:
            later.update([1, 5], "after the point")
            later.delete([2, 6])
            later.insert(5001, 5003)
        with verified_table.change() as latest:
            latest.update([5001], "and again")
            latest.delete([5002])
        verified_table.land_and_apply()
        for base in bases:
            found = verified_table.verify(point, base)
            assert found.clean, found.differences
            # Keys 1 to 6, and the three that were inserted later.
            assert (found.resolved, found.source_rows) == (9, 200)

        verified_table.tamper("id = 5", note="tampered with")
        verified_table.tamper("id = 5003", note="and this")
        verified_table.remove("id = 5001")  # inserted after the point, so only a later verification can report it
        for base in bases:
            found = verified_table.verify(point, base)
            assert [(one.kind, one.key["id"], one.compared_with) for one in found.differences] == [
                ("different", "5", "raw events"),
                ("different", "5003", "raw events"),
            ]
            assert found.differences[0].columns == {"note": ("after the point", "tampered with")}


def test_a_lost_event_is_reported_although_its_key_changed_after_the_point(
    verified_table: VerifiedTable,
) -> None:
    filled(verified_table)
    base = verified_table.state()
    with verified_table.source.transaction() as lost:
        lost.update([8], "never streamed")
    with verified_table.point() as point:
        with verified_table.change() as later:
            later.update([8], "streamed")
        verified_table.land_and_apply()
        for found in (verified_table.verify(point, base), verified_table.verify(point)):
            (one,) = found.differences
            assert (one.kind, one.compared_with, found.different) == ("different", "source", 1)
            assert one.columns == {"note": ("never streamed", "note 8"), "qty": ("25", "24")}


def test_a_row_without_an_event_is_extra_although_its_position_is_after_the_point(
    verified_table: VerifiedTable,
) -> None:
    filled(verified_table)
    order = Position(0, streamed=True, lsn=2**62).encode()
    position = {ORDER_COLUMN: order, "__lsn": 2**62, "__txid": 2**40}
    verified_table.tamper("id = 5", id=7777, **{KEY_COLUMN: '["7777"]'}, **position)
    base = verified_table.state()
    with verified_table.point() as point:
        for found in (verified_table.verify(point, base), verified_table.verify(point)):
            assert [(one.kind, one.key["id"]) for one in found.differences] == [("extra", "7777")]


def test_a_base_newer_than_the_point_gives_no_false_difference(verified_table: VerifiedTable) -> None:
    filled(verified_table)
    with verified_table.point() as point:
        with verified_table.change() as later:
            later.update([8], "after the point")
        base = verified_table.land_and_apply()
        with verified_table.change() as latest:
            latest.update([8, 9], "and later")
        verified_table.land_and_apply()
        found = verified_table.verify(point, base)
    assert found.clean, found.differences
    assert found.resolved == 2


def test_keys_with_records_in_the_topic_are_pending_and_all_others_are_compared(verified_table: VerifiedTable) -> None:
    """The asset check verifies this way: it does not wait until the topic is landed."""
    filled(verified_table)
    topic = Topic(verified_table.lake.engines, verified_table.lake.name)
    with verified_table.point() as point:
        with verified_table.change() as applied:
            applied.update([1, 2], "after the point")
        verified_table.land_and_apply()
        with verified_table.source.transaction() as waiting:
            waiting.update([3], "in the topic only")
        topic.transaction({}, values=[record_bytes(event) for event in waiting.events])
        kafka = verified_table.lake.engines.kafka
        ends = kafka.end_offsets(topic.name)
        later = KafkaRange(topic.name, dict.fromkeys(ends, 0), ends, {"bootstrap.servers": kafka.bootstrap})
        verified_table.tamper("id = 3", note="its change is still in the topic")
        found = verified_table.verify(point, later=later)
        assert found.clean, found.differences
        assert (found.resolved, found.pending, found.compared) == (2, 1, 199)
        ((digest, pending),) = found.pending_keys.items()
        assert (len(digest), pending) == (16, {"id": "3"})

        verified_table.tamper("id = 2", note="without an event")
        again = verified_table.verify(point, later=later)
        assert again.pending_keys == found.pending_keys
        (one,) = again.differences
    assert (one.kind, one.key, one.compared_with) == ("different", {"id": "2"}, "raw events")
    topic.close()


def test_the_plan_does_not_contain_the_password(verified_table: VerifiedTable) -> None:
    from cdc_lake.jobs.verify import source_rows

    filled(verified_table, 5)
    with verified_table.point() as point:
        spec = verified_table.spec(point)
        rows = source_rows.source_rows(verified_table.lake.engines.spark, spec)
        plan = rows._jdf.queryExecution().toString() + rows._jdf.queryExecution().logical().treeString()
        assert rows.count() == 5
    assert "CopyReader" in plan
    assert spec.source.access.password not in plan + repr(spec)


def test_a_record_that_cannot_be_decoded_does_not_change_the_expected_row(verified_table: VerifiedTable) -> None:
    before = filled(verified_table).state()
    with verified_table.point() as point:
        with verified_table.change() as good:
            good.update([1], "read")
        with verified_table.change() as bad:
            bad.update([1], "not read")
        verified_table.undelivered[-1]["qty"] = "many"
        verified_table.land_and_apply()
        found = verified_table.verify(point, before)
    assert found.clean, found.differences
    assert found.resolved == 1


def test_values_that_postgresql_left_out_are_taken_from_earlier_versions(verified_table: VerifiedTable) -> None:
    before, lake = filled(verified_table).state(), verified_table.lake
    virtual = OmittedColumn(name="twice", reason="virtual generated, never published", streamed=False)
    schema = captured_schema.latest(lake.store, lake.name, SOURCE)
    captured_schema.record(lake.store, lake.name, schema.model_copy(update={"omitted": (virtual,)}))
    with verified_table.point() as point:
        with verified_table.change() as later:
            later.update([2], "note 2")
            later.delete([3])
        updated, deleted = verified_table.undelivered
        updated["note"] = PLACEHOLDER
        deleted |= {"note": "", "qty": 0, "amount": "", "at": None}
        verified_table.land_and_apply()
        reports = [verified_table.verify(point, base) for base in (None, before)]
        verified_table.tamper("id = 2", note="another")
        found = verified_table.verify(point, before)
    for report in reports:
        assert report.clean, report.differences
        assert (report.resolved, report.omitted_columns) == (2, ["twice"])
    assert [one.columns for one in found.differences] == [{"note": ("note 2", "another")}]
    rows = lake.engines.spark.read.format("hudi").load(lake.spec.uri()).where("id = 3")
    assert [(row["__deleted"], row["note"], row["qty"]) for row in rows.collect()] == [(True, "note 3", 9)]


def test_each_record_is_parsed_at_most_four_times(verified_table: VerifiedTable) -> None:
    """Spark inlines the expressions of a filter: with a filter on unreadable records, the plan parsed each record 76
    times, which was most of the work of a verification under load.
    """
    before = filled(verified_table).state()
    spark = verified_table.lake.engines.spark
    with verified_table.point() as point:
        with verified_table.change() as after:
            after.update([1], "later")
        verified_table.land_and_apply()
        keys = spark.createDataFrame([(1,)], "c0 int")
        spark.conf.set("spark.sql.debug.maxToStringFields", 10_000)  # else the plan's text is truncated
        try:
            sums = changed_keys.fold_events(spark, verified_table.spec(point, before), keys, before)
            plan = sums._jdf.queryExecution().optimizedPlan().toString()
        finally:
            spark.conf.unset("spark.sql.debug.maxToStringFields")
    assert "from_json(" not in plan
    assert plan.count("MapInArrow") == 1, plan  # it reads and parses the records
