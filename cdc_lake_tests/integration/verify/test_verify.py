"""The oracle on a table of 20,000 rows: clean where all is well, and every kind of fault named."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from cdc_lake.contract.schema.special_values import ValueRules
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Position
from cdc_lake.jobs.hudi.writer import KEY_COLUMN
from cdc_lake.jobs.verify import changed_keys
from cdc_lake.jobs.verify.spec import KafkaRange
from cdc_lake_tests.integration.jobs.hudi_table import wire
from cdc_lake_tests.integration.jobs.landing_topic import Topic
from cdc_lake_tests.integration.verify.verified_table import Judged

ROWS = 20_000
FAULTS = ("missing", "extra", "different", "doubled")


def filled(judged: Judged, rows: int = 200) -> Judged:
    """All rows on both sides."""
    with judged.change() as transaction:
        transaction.insert(1, rows)
    judged.carry()
    return judged


def test_one_changed_cell_of_many_rows(judged: Judged) -> None:
    filled(judged, ROWS)
    with judged.point() as point:
        clean = judged.verify(point)
        assert clean.clean
        assert (clean.source_rows, clean.lake_rows, clean.compared, clean.resolved) == (ROWS, ROWS, ROWS, 0)
        judged.tamper("id = 12345", note="")
        found = judged.verify(point)
    assert not found.clean
    assert [getattr(found, fault) for fault in FAULTS] == [0, 0, 1, 0]
    (one,) = found.differences
    assert (one.kind, one.key, one.columns) == ("different", {"id": "12345"}, {"note": (None, "")})


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("note", None, ("note 3", None)),
        ("note", "note 3 ", ("note 3", "note 3 ")),
        ("qty", 10, ("9", "10")),
        ("amount", "0.44", ("0.43", "0.44")),
        ("at", "2024-03-01 02:59:59.123457", ("2024-03-01 02:59:59.123456", "2024-03-01 02:59:59.123457")),
    ],
)
def test_the_smallest_change_of_a_value(judged: Judged, column: str, value: object, shown: tuple[str, str]) -> None:
    filled(judged, 10)
    judged.tamper("id = 3", **{column: value})
    with judged.point() as point:
        (one,) = judged.verify(point).differences
    assert one.columns == {column: shown}


@pytest.mark.parametrize(("column", "value"), [("at", "infinity"), ("at", "-infinity"), ("amount", "NaN")])
def test_a_value_that_the_lake_refused_equals_no_null(judged: Judged, column: str, value: str) -> None:
    filled(judged, 10)
    with judged.source.transaction() as refused:
        refused.set_untold(3, column, value)
    judged.tamper("id = 3", **{column: None})
    with judged.point() as point:
        found = judged.verify(point)
        declared = judged.verify(point, rules=ValueRules(infinity="null", nan="null"))
    assert [(one.key, one.columns) for one in found.differences] == [({"id": "3"}, {column: (value, None)})]
    assert declared.clean, declared.differences


def test_rows_that_are_missing_extra_and_doubled(judged: Judged) -> None:
    filled(judged)
    with judged.source.transaction() as unseen:  # nobody streams it
        unseen.insert(1001, 1003)
        unseen.delete([7])
    judged.double("id = 9")
    judged.remove("id = 11")
    with judged.point() as point:
        found = judged.verify(point)
        few = judged.verify(point, limit=2)
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


def test_deleted_rows_are_nowhere(judged: Judged) -> None:
    filled(judged, 20)
    with judged.change() as transaction:
        transaction.delete([1, 2, 3])
    judged.carry()
    with judged.point() as point:
        found = judged.verify(point)
    assert found.clean
    assert (found.source_rows, found.lake_rows, found.compared) == (17, 17, 17)


def test_nothing_on_either_side(judged: Judged) -> None:
    filled(judged, 3)
    with judged.change() as transaction:
        transaction.delete([1, 2, 3])
    judged.carry()
    with judged.point() as point:
        assert judged.verify(point).compared == 0


@pytest.mark.parametrize("with_base", [True, False])
def test_keys_that_changed_after_the_point(judged: Judged, with_base: bool) -> None:
    filled(judged)
    base = judged.state() if with_base else None
    with judged.change() as transaction:
        transaction.update([1, 2], "before the point")
    with ExitStack() as held:
        with judged.change() as open_one:
            open_one.update([3, 4], "written before the point, committed after it")
            with judged.change() as ended:
                ended.update([5], "begun after that, and ended before the point")
            point = held.enter_context(judged.point())
        with judged.change() as later:
            later.update([1, 5], "after the point")
            later.delete([2, 6])
            later.insert(5001, 5003)
        with judged.change() as latest:
            latest.update([5001], "and again")
            latest.delete([5002])
        judged.carry()
        found = judged.verify(point, base)
        assert found.clean, found.differences
        # 1 to 6, and three that were not there yet.
        assert (found.resolved, found.source_rows) == (9, 200)

        judged.tamper("id = 5", note="tampered with")
        judged.tamper("id = 5003", note="and this")
        judged.remove("id = 5001")  # which the point has not: the next verification misses it
        found = judged.verify(point, base)
    assert [(one.kind, one.key["id"], one.judge) for one in found.differences] == [
        ("different", "5", "raw events"),
        ("different", "5003", "raw events"),
    ]
    assert found.differences[0].columns == {"note": ("after the point", "tampered with")}


@pytest.mark.parametrize("with_base", [True, False])
def test_a_lost_event_of_a_key_that_changed_after_the_point(judged: Judged, with_base: bool) -> None:
    filled(judged)
    base = judged.state()
    with judged.source.transaction() as lost:
        lost.update([8], "never streamed")
    with judged.point() as point:
        with judged.change() as later:
            later.update([8], "streamed")
        judged.carry()
        found = judged.verify(point, base if with_base else None)
    (one,) = found.differences
    assert (one.kind, one.judge, found.different) == ("different", "source", 1)
    assert one.columns == {"note": ("never streamed", "note 8"), "qty": ("25", "24")}


@pytest.mark.parametrize("with_base", [True, False])
def test_a_row_that_nobody_sent_and_that_looks_newer_than_the_point(judged: Judged, with_base: bool) -> None:
    filled(judged)
    order = Position(0, streamed=True, lsn=2**62).encode()
    position = {ORDER_COLUMN: order, "__lsn": 2**62, "__txid": 2**40}
    judged.tamper("id = 5", id=7777, **{KEY_COLUMN: '["7777"]'}, **position)
    base = judged.state()
    with judged.point() as point:
        found = judged.verify(point, base if with_base else None)
    assert [(one.kind, one.key["id"]) for one in found.differences] == [("extra", "7777")]


def test_a_base_that_is_newer_than_the_point_is_seen_through(judged: Judged) -> None:
    filled(judged)
    with judged.point() as point:
        with judged.change() as later:
            later.update([8], "after the point")
        base = judged.carry()
        with judged.change() as latest:
            latest.update([8, 9], "and later")
        judged.carry()
        found = judged.verify(point, base)
    assert found.clean, found.differences
    assert found.resolved == 2


def test_what_waits_in_the_topic_is_set_aside_and_what_was_applied_is_judged(judged: Judged) -> None:
    """As the asset check does it, which waits for nobody."""
    filled(judged)
    topic = Topic(judged.lake.engines, judged.lake.name)
    with judged.point() as point:
        with judged.change() as applied:
            applied.update([1, 2], "after the point")
        judged.carry()
        with judged.source.transaction() as waiting:
            waiting.update([3], "in the topic only")
        topic.transaction({}, values=[wire(event) for event in waiting.events])
        kafka = judged.lake.engines.kafka
        ends = kafka.end_offsets(topic.name)
        later = KafkaRange(topic.name, dict.fromkeys(ends, 0), ends, {"bootstrap.servers": kafka.bootstrap})
        judged.tamper("id = 3", note="whose change is on its way")
        found = judged.verify(point, later=later)
        assert found.clean, found.differences
        assert (found.resolved, found.pending, found.compared) == (2, 1, 199)
        ((digest, pending),) = found.pending_keys.items()
        assert (len(digest), pending) == (16, {"id": "3"})

        judged.tamper("id = 2", note="of no event")
        again = judged.verify(point, later=later)
        assert again.pending_keys == found.pending_keys
        (one,) = again.differences
    assert (one.kind, one.key, one.judge) == ("different", {"id": "2"}, "raw events")
    topic.close()


def test_the_password_is_in_no_plan(judged: Judged) -> None:
    from cdc_lake.jobs.verify import compared_rows

    filled(judged, 5)
    with judged.point() as point:
        spec = judged.spec(point)
        rows = compared_rows.source_rows(judged.lake.engines.spark, spec)
        plan = rows._jdf.queryExecution().toString() + rows._jdf.queryExecution().logical().treeString()
        assert rows.count() == 5
    assert "CopyReader" in plan
    assert spec.source.access.password not in plan + repr(spec)


def test_a_record_that_cannot_be_read_is_not_what_a_row_came_to(judged: Judged) -> None:
    before = filled(judged).state()
    with judged.point() as point:
        with judged.change() as good:
            good.update([1], "read")
        with judged.change() as bad:
            bad.update([1], "not read")
        judged.undelivered[-1]["qty"] = "many"
        judged.carry()
        found = judged.verify(point, before)
    assert found.clean, found.differences
    assert found.resolved == 1


def test_a_record_is_not_parsed_again_for_each_of_its_fields(judged: Judged) -> None:
    """Spark writes a filter's expressions out, down to the parsing: with one on what can't be read, the plan had 76 of
    them, and most of what verify did under load was that.
    """
    before = filled(judged).state()
    spark = judged.lake.engines.spark
    with judged.point() as point:
        with judged.change() as after:
            after.update([1], "later")
        judged.carry()
        keys = spark.createDataFrame([(1,)], "c0 int")
        spark.conf.set("spark.sql.debug.maxToStringFields", 10_000)  # the plan is to be told in full
        try:
            sums = changed_keys.fold_events(spark, judged.spec(point, before), keys, before)
            plan = sums._jdf.queryExecution().optimizedPlan().toString()
        finally:
            spark.conf.unset("spark.sql.debug.maxToStringFields")
    # To narrow the records down, to see whether there is a key, and for all of the fields.
    assert 0 < plan.count("from_json(") <= 4, plan
