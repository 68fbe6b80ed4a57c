"""What may follow on a schema version, what is carried on, and which version explains a record."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cdc_lake.contract.errors import SchemaChangeError
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.schema.evolution import describe_changes, is_widening
from cdc_lake.contract.schema.record_versions import RecordLayout, record_layouts
from cdc_lake_tests.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE

TABLE = "public.orders"


def columns(*declared: str) -> tuple[Column, ...]:
    """Columns by `number name type`, and what older rows show after `=`."""
    made = []
    for text in declared:
        before, _, missing = text.partition(" = ")
        number, name, kind = before.split(" ", 2)
        made.append(Column(name=name, type=kind, attnum=int(number), missing=missing or None))
    return tuple(made)


def seen(*declared: str, key: str = "id", oid: int = 1, epoch: int = 0) -> TableSchema:
    """What a look at the catalog finds."""
    return TableSchema(version=0, table=TABLE, columns=columns(*declared), key=(key,), oid=oid, filenode=1, epoch=epoch)


ID = "1 id integer"
BASE = seen(ID, "2 note character varying(10)", "3 qty integer")


def history(*looks: TableSchema) -> list[TableSchema]:
    """All versions after some looks."""
    store = MemoryStore()
    for each in looks:
        captured_schema.record(store, PIPELINE, each)
    return captured_schema.versions(store, PIPELINE, TABLE)


def lake(version: TableSchema) -> dict[str, str]:
    """The lake's columns of the source."""
    return {name: kind for name, kind in version.lake_columns() if not name.startswith("__")}


WIDER = [
    ("smallint", "integer"),
    ("integer", "bigint"),
    ("integer", "numeric(12,2)"),
    ("integer", "numeric"),
    ("bigint", "text"),
    ("numeric(6,2)", "numeric(10,4)"),
    ("numeric(6,2)", "numeric"),
    ("numeric(40,2)", "numeric(50,2)"),
    ("character varying(5)", "character varying(6)"),
    ("character varying(5)", "text"),
    ("character varying(5)", "character varying"),
    ("uuid", "text"),
    ("jsonb", "text"),
    ("timestamp(0) without time zone", "timestamp(3) without time zone"),
    ("timestamp(4) without time zone", "timestamp without time zone"),
    ("timestamp(3) with time zone", "timestamp with time zone"),
    ("integer[]", "bigint[]"),
]
NARROWER = [
    ("bigint", "integer"),
    ("bigint", "double precision"),
    ("real", "double precision"),
    ("numeric", "text"),
    ("double precision", "real"),
    ("integer", "numeric(6,2)"),
    ("integer", "numeric(50,2)"),
    ("numeric(10,4)", "numeric(6,2)"),
    ("numeric(6,2)", "numeric(6,4)"),
    ("numeric", "numeric(10,2)"),
    ("numeric(40,2)", "numeric(50,4)"),
    ("numeric(6,2)", "numeric(45,4)"),
    ("character varying(6)", "character varying(5)"),
    ("text", "character varying(5)"),
    ("character(5)", "text"),
    ("character(5)", "character(6)"),
    ("timestamp(3) without time zone", "timestamp without time zone"),
    ("timestamp without time zone", "timestamp(3) without time zone"),
    ("timestamp without time zone", "timestamp with time zone"),
    ("time(3) without time zone", "time without time zone"),
    ("date", "timestamp without time zone"),
    ("json", "jsonb"),
    ("text", "jsonb"),
    ("inet", "text"),
    ("real", "text"),
    ("boolean", "integer"),
    ("integer", "date"),
    ("integer[]", "text[]"),
    ("integer", "integer[]"),
]


@pytest.mark.parametrize(("old", "new"), WIDER)
def test_what_widens(old: str, new: str) -> None:
    assert is_widening(Column(name="c", type=old), Column(name="c", type=new))


@pytest.mark.parametrize(("old", "new"), NARROWER)
def test_what_does_not_widen(old: str, new: str) -> None:
    assert not is_widening(Column(name="c", type=old), Column(name="c", type=new))


def test_an_enum_stays_text() -> None:
    mood = Column(name="c", type="mood", kind="enum")
    assert is_widening(mood, Column(name="c", type="text"))
    assert is_widening(mood, Column(name="c", type="feeling", kind="enum"))
    assert not is_widening(Column(name="c", type="text"), mood)


def test_an_added_column_keeps_what_older_rows_show() -> None:
    found = history(BASE, seen(*spelled(BASE), "4 more integer = 5"), seen(*spelled(BASE), "4 more bigint"))
    assert [version.version for version in found] == [1, 2, 3]
    assert [version.columns[-1].missing for version in found[1:]] == ["5", "5"]
    assert lake(found[2]) == {"id": "int", "note": "string", "qty": "int", "more": "bigint"}
    assert describe_changes(found[0], found[2]) == ["more bigint added (older rows show 5)"]


def spelled(version: TableSchema) -> list[str]:
    """A version's columns as columns() reads them."""
    return [f"{column.attnum} {column.name} {column.type}" for column in version.columns]


def test_a_dropped_column_stays_as_history() -> None:
    found = history(BASE, seen(ID, "3 qty integer"))
    assert lake(found[1]) == {"id": "int", "qty": "int", "note": "string"}
    assert describe_changes(*found) == ["note dropped (kept as history)"]


def test_a_renamed_column_is_the_same_column() -> None:
    found = history(BASE, seen(ID, "2 remark character varying(10)", "3 qty integer"))
    assert lake(found[1]) == {"id": "int", "remark": "string", "qty": "int", "note": "string"}
    assert describe_changes(*found) == ["note renamed to remark"]
    back = history(BASE, seen(ID, "2 remark character varying(10)", "3 qty integer"), BASE)
    assert lake(back[2]) == {"id": "int", "note": "string", "qty": "int", "remark": "string"}


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (seen(ID, "2 note character varying(10)", "3 qty smallint"), "column qty changed from integer to smallint"),
        (seen(ID, "3 qty integer", "4 note text"), "column note has the name of an earlier column"),
        (seen(*spelled(BASE), oid=2), "the table was dropped and re-created"),
    ],
)
def test_what_needs_a_resnapshot_is_told_by_name(after: TableSchema, said: str) -> None:
    store = MemoryStore()
    captured_schema.record(store, PIPELINE, BASE)
    with pytest.raises(SchemaChangeError) as caught:
        captured_schema.record(store, PIPELINE, after)
    assert said in caught.value.user_message
    assert "`cdc-lake resnapshot shop`" in caught.value.user_message
    assert len(captured_schema.versions(store, PIPELINE, TABLE)) == 1
    # A new snapshot brings every row: with it, the change can be applied.
    captured, added = captured_schema.record(store, PIPELINE, after.model_copy(update={"epoch": 1}))
    assert (captured.version, captured.epoch, added) == (2, 1, True)
    assert captured_schema.record(store, PIPELINE, after) == (captured, False)


def test_another_column_by_the_name_of_the_key_needs_a_lake_of_its_own() -> None:
    """A new snapshot would bring rows whose keys are of another column than those that are stored."""
    for epoch in (0, 1):
        with pytest.raises(
            SchemaChangeError, match=r"column id of the primary key .* was dropped.*`cdc-lake reset shop`"
        ):
            history(BASE, seen("9 id bigint", *spelled(BASE)[1:], epoch=epoch))


def test_another_key_needs_a_lake_of_its_own() -> None:
    with pytest.raises(SchemaChangeError, match=r"changed from \(id\) to \(qty\).*`cdc-lake reset shop`"):
        history(BASE, seen(*spelled(BASE), key="qty", epoch=1))


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (
            seen(ID, "2 qty character varying(10)", "3 note integer", epoch=1),
            "column note of public.orders has type string",
        ),
        (seen(ID, "2 note date", epoch=1), "column note of public.orders has type string in the lake"),
        (seen(ID, "4 qty date", epoch=1), "column qty of public.orders has type int in the lake"),
    ],
)
def test_a_type_that_files_cannot_be_given_is_refused_in_a_new_epoch_too(after: TableSchema, said: str) -> None:
    with pytest.raises(SchemaChangeError, match=f"{said}.*`cdc-lake reset shop`"):
        history(BASE, after)
    with pytest.raises(SchemaChangeError, match=said):
        history(BASE, seen(ID, epoch=1), after.model_copy(update={"epoch": 2}))


def test_what_was_captured_without_numbers_goes_on() -> None:
    old = TableSchema(
        version=0,
        table=TABLE,
        columns=(Column(name="id", type="integer"), Column(name="note", type="text")),
        key=("id",),
    )
    found = history(old, seen(ID, "2 note text", "3 qty integer = 7"))
    assert [version.version for version in found] == [1, 2]
    assert lake(found[1]) == {"id": "int", "note": "string", "qty": "int"}
    assert describe_changes(*found) == ["qty integer added (older rows show 7)"]


def fed(reading: RecordLayout) -> dict[str, tuple[list[str], bool]]:
    """By lake column: the fields that feed it, and whether one has to be there."""
    return {column.name: ([field.name for field in column.fields], column.required) for column in reading.columns}


def read(versions: Sequence[TableSchema]) -> RecordLayout:
    """The only reading."""
    (only,) = record_layouts(versions)
    return only


def test_a_reading_takes_records_of_every_version() -> None:
    versions = history(
        BASE,
        seen(*spelled(BASE), "4 more integer = 5"),
        seen(ID, "2 remark text", "4 more bigint", "5 last text"),
    )
    reading = read(versions)
    assert fed(reading) == {
        "id": (["id"], True),
        "remark": (["remark", "note"], True),
        "more": (["more"], False),
        "last": (["last"], False),
        "note": ([], False),
        "qty": (["qty"], False),
    }
    missing = {column.name: column.missing.missing for column in reading.columns if column.missing is not None}
    assert missing == {"more": "5"}
    assert {"note", "remark", "qty", "more", "last", "__lsn"} <= reading.known_fields()


def test_each_epoch_is_read_by_its_own_versions() -> None:
    versions = history(BASE, seen(ID, "2 note jsonb", "3 qty bigint", epoch=2), seen(ID, "2 note jsonb", epoch=2))
    old, new = record_layouts(versions)
    assert ((old.first, old.end), (new.first, new.end)) == ((0, 2), (2, None))
    by_name = {column.name: column for column in old.columns}
    assert by_name["note"].fields[0].type == "character varying(10)"
    assert by_name["qty"].fields[0].type == "integer"
    assert [column.lake_type for column in old.columns] == [column.lake_type for column in new.columns]
    assert record_layouts(versions, {0, 1}) == [old]
    assert record_layouts(versions, {5}) == [new]


def test_a_table_made_again_is_paired_by_names() -> None:
    versions = history(BASE, seen("1 id integer", "2 qty integer", "3 other text", oid=9, epoch=1))
    old, _ = record_layouts(versions)
    assert fed(old) == {
        "id": (["id"], True),
        "qty": (["qty"], True),
        "other": ([], False),
        "note": (["note"], False),
    }
