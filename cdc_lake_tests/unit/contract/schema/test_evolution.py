"""Schema evolution: accepted changes, columns kept from earlier versions, and the record layout of each version."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cdc_lake.contract.errors import SchemaChangeError
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import EXCLUDED, Column, OmittedColumn, TableSchema
from cdc_lake.contract.schema.evolution import _promotable, describe_changes, differs, require_one_landed_type
from cdc_lake.contract.schema.record_versions import RecordLayout, record_layouts
from cdc_lake.contract.schema.widening import is_widening
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE

TABLE = "public.orders"


def columns(*declared: str) -> tuple[Column, ...]:
    """Parse columns from `number name type = default of older rows`."""
    parsed = []
    for text in declared:
        before, _, missing = text.partition(" = ")
        number, name, kind = before.split(" ", 2)
        parsed.append(Column(name=name, type=kind, attnum=int(number), missing=missing or None))
    return tuple(parsed)


def catalog_schema(*declared: str, key: str = "id", oid: int = 1, epoch: int = 0) -> TableSchema:
    """Return the schema that the source's catalog shows."""
    return TableSchema(version=0, table=TABLE, columns=columns(*declared), key=(key,), oid=oid, filenode=1, epoch=epoch)


ID = "1 id integer"
BASE = catalog_schema(ID, "2 note character varying(10)", "3 qty integer")


def history(*schemas: TableSchema) -> list[TableSchema]:
    """Record these schemas in order; return all versions."""
    store = MemoryStore()
    for schema in schemas:
        captured_schema.record(store, PIPELINE, schema)
    return captured_schema.versions(store, PIPELINE, TABLE)


def lake(version: TableSchema) -> dict[str, str]:
    """Return name and type of the lake's columns without the event fields."""
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
def test_widening_type_changes(old: str, new: str) -> None:
    assert is_widening(Column(name="c", type=old), Column(name="c", type=new))


@pytest.mark.parametrize(("old", "new"), NARROWER)
def test_other_type_changes_are_not_widening(old: str, new: str) -> None:
    assert not is_widening(Column(name="c", type=old), Column(name="c", type=new))


ALLOWED = {
    "smallint": "integer bigint numeric numeric(10,2) numeric(10,4) numeric(18,0) numeric(19,0) numeric(38,0) "
    "numeric(5,0) real double-precision text varchar varchar(6) varchar(11) varchar(20)",
    "integer": "bigint numeric numeric(18,0) numeric(19,0) numeric(38,0) double-precision text varchar varchar(11) "
    "varchar(20)",
    "bigint": "numeric numeric(19,0) numeric(38,0) text varchar varchar(20)",
    "numeric": "",
    "numeric(10,2)": "numeric",
    "numeric(10,4)": "numeric",
    "numeric(4,2)": "numeric numeric(10,2) numeric(10,4)",
    "numeric(5,0)": "numeric numeric(10,2) numeric(10,4) numeric(18,0) numeric(19,0) numeric(38,0)",
    "numeric(18,0)": "numeric numeric(19,0) numeric(38,0)",
    "numeric(19,0)": "numeric numeric(38,0)",
    "numeric(38,0)": "numeric",
    "real": "",
    "double-precision": "",
    "boolean": "text",
    "text": "citext",
    "citext": "text",
    "varchar": "text citext",
    "varchar(6)": "text citext varchar varchar(11) varchar(20)",
    "varchar(11)": "text citext varchar varchar(20)",
    "varchar(20)": "text citext varchar",
    "character(5)": "",
    "uuid": "text",
    "json": "text",
    "jsonb": "text json",
    "xml": "text",
    "bytea": "",
    "date": "",
    "timestamp(3)-without-time-zone": "",
    "timestamp-without-time-zone": "",
    "timestamp(3)-with-time-zone": "timestamp-with-time-zone",
    "timestamp-with-time-zone": "",
    "time(3)-without-time-zone": "",
    "time-without-time-zone": "",
    "interval": "",
    "inet": "",
    "money": "",
    "smallint[]": "integer[] bigint[]",
    "integer[]": "bigint[]",
    "bigint[]": "",
    "text[]": "",
}
"""The types that each type may change to without a new snapshot, with `-` for blanks and varchar for its long name."""
EXTREMES = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}


def column(name: str) -> Column:
    """Return a column of a type as ALLOWED writes it."""
    return Column(name="c", type=name.replace("-", " ").replace("varchar", "character varying"))


def test_each_pair_of_types() -> None:
    found = {old: {new for new in ALLOWED if is_widening(column(old), column(new))} for old in ALLOWED}
    assert found == {old: {old, *allowed.split()} for old, allowed in ALLOWED.items()}


@pytest.mark.parametrize("old", EXTREMES)
def test_extreme_integers_fit_into_each_allowed_type(old: str) -> None:
    value = -EXTREMES[old]
    for new in ALLOWED[old].split():
        kind, _, given = new.partition("(")
        sizes = [int(each) for each in given.rstrip(")").split(",") if each]
        if kind in EXTREMES:
            assert EXTREMES[kind] >= -value
        elif kind == "real":
            assert abs(value) <= 2**24, "a real has 24 bits"
        elif kind == "double-precision":
            assert abs(value) <= 2**53, "a double has 53 bits"
        elif kind == "numeric" and sizes:
            assert len(str(-value)) <= sizes[0] - sizes[1]
        elif kind == "varchar" and sizes:
            assert len(str(value)) <= sizes[0]
        else:
            assert new in {"numeric", "text", "varchar"}


@pytest.mark.parametrize(
    ("old", "new", "widens"),
    [
        ("decimal(10,2)", "decimal(10,2)", True),
        ("decimal(10,2)", "decimal(12,4)", True),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(11,4)", False),
        ("decimal(10,2)", "decimal(12,1)", False),
        ("decimal(10,2)", "string", False),
        ("string", "decimal(10,2)", False),
        ("int", "bigint", True),
        ("bigint", "int", False),
    ],
)
def test_a_decimal_of_the_lake_keeps_all_digits_before_and_after_the_point(old: str, new: str, widens: bool) -> None:
    assert _promotable(old, new) is widens


@pytest.mark.parametrize(
    ("old", "new", "widens"),
    [
        ("smallint", "varchar(6)", True),  # -32768
        ("smallint", "varchar(5)", False),
        ("varchar(5)", "varchar(5)", True),
        ("varchar(5)", "varchar(4)", False),
        ("varchar", "varchar(5)", False),
        ("integer[]", "bigint[]", True),
        ("integer[]", "bigint", False),
        ("integer", "bigint[]", False),
        ("numeric(10)", "numeric(10,0)", True),
        ("numeric(10)", "numeric(10,1)", False),
        ("numeric(10)", "numeric(11,1)", True),
        ("bigint", "varchar(20)", True),  # -9223372036854775808
        ("bigint", "varchar(19)", False),
        ("integer[]", "integer[]", True),
        ("bigint[]", "integer[]", False),
        ("timestamp without time zone", "timestamp(6) without time zone", True),
        ("timestamp without time zone", "timestamp(5) without time zone", False),
        ("timestamp(6) without time zone", "timestamp without time zone", True),
        ("timestamp(2) without time zone", "timestamp(3) without time zone", True),
        ("timestamp(3) without time zone", "timestamp(4) without time zone", False),  # other unit
        ("timestamp(4) without time zone", "timestamp(5) without time zone", True),
        ("timestamp(3) with time zone", "timestamp(4) with time zone", True),  # sent as text
    ],
)
def test_lengths_elements_and_digits_at_their_bounds(old: str, new: str, widens: bool) -> None:
    assert is_widening(column(old), column(new)) is widens


def test_an_enum_may_become_text_but_not_the_reverse() -> None:
    mood = Column(name="c", type="mood", kind="enum")
    assert is_widening(mood, Column(name="c", type="text"))
    assert is_widening(mood, Column(name="c", type="feeling", kind="enum"))
    assert not is_widening(Column(name="c", type="text"), mood)


def test_an_added_column_keeps_the_default_of_older_rows() -> None:
    found = history(
        BASE,
        catalog_schema(*declarations(BASE), "4 more integer = 5"),
        catalog_schema(*declarations(BASE), "4 more bigint"),
    )
    assert [version.version for version in found] == [1, 2, 3]
    assert [version.columns[-1].missing for version in found[1:]] == ["5", "5"]
    assert lake(found[2]) == {"id": "int", "note": "string", "qty": "int", "more": "bigint"}
    assert describe_changes(found[0], found[2]) == ["more bigint added (older rows show 5)"]


def declarations(version: TableSchema) -> list[str]:
    """Return a version's columns in the notation of columns()."""
    return [f"{column.attnum} {column.name} {column.type}" for column in version.columns]


def test_a_new_epoch_may_change_a_type_without_widening_it() -> None:
    shorter = catalog_schema(ID, "2 note character varying(4)", "3 qty bigint", epoch=1)
    assert describe_changes(*history(BASE, shorter)) == [
        "note changed from character varying(10) to character varying(4)",
        "qty widened from integer to bigint",
    ]


def test_a_dropped_column_is_kept_as_history() -> None:
    found = history(BASE, catalog_schema(ID, "3 qty integer"))
    assert lake(found[1]) == {"id": "int", "qty": "int", "note": "string"}
    assert describe_changes(*found) == ["note dropped (kept as history)"]


def test_a_renamed_column_keeps_its_history() -> None:
    found = history(BASE, catalog_schema(ID, "2 remark character varying(10)", "3 qty integer"))
    assert lake(found[1]) == {"id": "int", "remark": "string", "qty": "int", "note": "string"}
    assert describe_changes(*found) == ["note renamed to remark"]
    back = history(BASE, catalog_schema(ID, "2 remark character varying(10)", "3 qty integer"), BASE)
    assert lake(back[2]) == {"id": "int", "note": "string", "qty": "int", "remark": "string"}


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            catalog_schema(ID, "2 note character varying(10)", "3 qty smallint"),
            "column qty changed from integer to smallint",
        ),
        (catalog_schema(ID, "3 qty integer", "4 note text"), "column note has the name of an earlier column"),
        (catalog_schema(*declarations(BASE), oid=2), "the table was dropped and re-created"),
    ],
)
def test_changes_that_need_a_resnapshot_are_rejected_until_a_new_epoch(after: TableSchema, message: str) -> None:
    store = MemoryStore()
    captured_schema.record(store, PIPELINE, BASE)
    with pytest.raises(SchemaChangeError) as caught:
        captured_schema.record(store, PIPELINE, after)
    assert message in caught.value.user_message
    assert "`cdc-lake resnapshot shop`" in caught.value.user_message
    assert len(captured_schema.versions(store, PIPELINE, TABLE)) == 1
    # A new snapshot contains every row, so that the change can be applied.
    captured, added = captured_schema.record(store, PIPELINE, after.model_copy(update={"epoch": 1}))
    assert (captured.version, captured.epoch, added) == (2, 1, True)
    assert captured_schema.record(store, PIPELINE, after) == (captured, False)


def test_a_column_that_becomes_a_constant_requires_a_resnapshot() -> None:
    constant = Column(name="note", type="character varying(10)", inserted="new")
    after = BASE.model_copy(update={"columns": (BASE.columns[0], constant, BASE.columns[2])})
    with pytest.raises(SchemaChangeError, match="values of column note change from now on, because a transform was"):
        history(BASE, after)


def test_a_replaced_key_column_requires_a_reset() -> None:
    """Rows of a new snapshot would have keys from another column than the stored rows."""
    for epoch in (0, 1):
        with pytest.raises(SchemaChangeError, match=r"column id of its primary key was dropped.*`cdc-lake reset shop`"):
            history(BASE, catalog_schema("9 id bigint", *declarations(BASE)[1:], epoch=epoch))


def test_another_primary_key_requires_a_reset() -> None:
    with pytest.raises(SchemaChangeError, match=r"changed from \(id\) to \(qty\).*`cdc-lake reset shop`"):
        history(BASE, catalog_schema(*declarations(BASE), key="qty", epoch=1))


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            catalog_schema(ID, "2 qty character varying(10)", "3 note integer", epoch=1),
            "column note of public.orders: Hudi cannot promote string",
        ),
        (catalog_schema(ID, "2 note date", epoch=1), "column note of public.orders: Hudi cannot promote string"),
        (catalog_schema(ID, "4 qty date", epoch=1), "column qty of public.orders: Hudi cannot promote int"),
    ],
)
def test_an_incompatible_type_requires_a_reset_even_in_a_new_epoch(after: TableSchema, message: str) -> None:
    with pytest.raises(SchemaChangeError, match=f"{message}.*`cdc-lake reset shop`"):
        history(BASE, after)
    with pytest.raises(SchemaChangeError, match=message):
        history(BASE, catalog_schema(ID, epoch=1), after.model_copy(update={"epoch": 2}))


def test_schemas_captured_without_column_numbers_are_continued() -> None:
    old = TableSchema(
        version=0,
        table=TABLE,
        columns=(Column(name="id", type="integer"), Column(name="note", type="text")),
        key=("id",),
    )
    found = history(old, catalog_schema(ID, "2 note text", "3 qty integer = 7"))
    assert [version.version for version in found] == [1, 2]
    assert lake(found[1]) == {"id": "int", "note": "string", "qty": "int"}
    assert describe_changes(*found) == ["qty integer added (older rows show 7)"]


def fields_by_column(layout: RecordLayout) -> dict[str, tuple[list[str], bool]]:
    """Return by lake column: the record fields that fill it, and whether one is required."""
    return {column.name: ([field.name for field in column.fields], column.required) for column in layout.columns}


def only_layout(versions: Sequence[TableSchema]) -> RecordLayout:
    """Return the only record layout of these versions."""
    (only,) = record_layouts(versions)
    return only


def test_a_layout_reads_records_of_every_version() -> None:
    versions = history(
        BASE,
        catalog_schema(*declarations(BASE), "4 more integer = 5"),
        catalog_schema(ID, "2 remark text", "4 more bigint", "5 last text"),
    )
    layout = only_layout(versions)
    assert fields_by_column(layout) == {
        "id": (["id"], True),
        "remark": (["remark", "note"], True),
        "more": (["more"], False),
        "last": (["last"], False),
        "note": ([], False),
        "qty": (["qty"], False),
    }
    missing = {column.name: column.missing.missing for column in layout.columns if column.missing is not None}
    assert missing == {"more": "5"}
    assert {"note", "remark", "qty", "more", "last", "__lsn"} <= layout.known_fields()


def test_each_epoch_has_its_own_layout() -> None:
    versions = history(
        BASE, catalog_schema(ID, "2 note jsonb", "3 qty bigint", epoch=2), catalog_schema(ID, "2 note jsonb", epoch=2)
    )
    old, new = record_layouts(versions)
    assert ((old.first, old.end), (new.first, new.end)) == ((0, 2), (2, None))
    by_name = {column.name: column for column in old.columns}
    assert by_name["note"].fields[0].type == "character varying(10)"
    assert by_name["qty"].fields[0].type == "integer"
    assert [column.lake_type for column in old.columns] == [column.lake_type for column in new.columns]
    assert record_layouts(versions, {0, 1}) == [old]
    assert record_layouts(versions, {5}) == [new]
    assert [[layout.covers(epoch) for epoch in (0, 1, 2, 3)] for layout in (old, new)] == [
        [True, True, False, False],
        [False, False, True, True],
    ]


def test_the_first_layout_is_that_of_all_earlier_epochs() -> None:
    """A pipeline's first versions can have been captured after its first epoch."""
    layouts = record_layouts(
        history(*(catalog_schema(ID, f"2 note{number} text", epoch=number) for number in (1, 2, 5)))
    )
    assert [(layout.first, layout.end) for layout in layouts] == [(0, 2), (2, 5), (5, None)]


def test_a_default_that_the_catalog_no_longer_has_is_no_change() -> None:
    """PostgreSQL removes it when it rewrites the table."""
    before = catalog_schema(*declarations(BASE), "4 more integer = 5")
    after = catalog_schema(*declarations(BASE), "4 more integer")
    assert not differs(before, after)
    assert differs(before, catalog_schema(*declarations(BASE), "4 more bigint = 5"))
    assert describe_changes(BASE, after) == ["more integer added (older rows show NULL)"]


def test_columns_of_a_recreated_table_are_matched_by_name() -> None:
    versions = history(BASE, catalog_schema("1 id integer", "2 qty integer", "3 other text", oid=9, epoch=1))
    old, _ = record_layouts(versions)
    assert fields_by_column(old) == {
        "id": (["id"], True),
        "qty": (["qty"], True),
        "other": ([], False),
        "note": (["note"], False),
    }


def omitting(schema: TableSchema, name: str, attnum: int, reason: str = EXCLUDED) -> TableSchema:
    """Return a schema without this column, which it omits."""
    kept = tuple(column for column in schema.columns if column.name != name)
    return schema.model_copy(
        update={"columns": kept, "omitted": (OmittedColumn(name=name, reason=reason, attnum=attnum),)}
    )


def test_an_excluded_column_is_kept_as_history_like_a_dropped_one() -> None:
    versions = history(BASE, omitting(BASE, "note", 2))
    assert lake(versions[1]) == {"id": "int", "qty": "int", "note": "string"}
    assert describe_changes(*versions) == ["note omitted (kept as history)"]
    # The connector may send it until it has the new configuration.
    assert fields_by_column(only_layout(versions)) == {
        "id": (["id"], True),
        "qty": (["qty"], True),
        "note": (["note"], False),
    }


def test_a_field_of_an_omitted_column_is_known_and_not_read() -> None:
    with_place = omitting(BASE, "place", 4, "the lake has no type for PostgreSQL's point")
    versions = history(BASE, with_place, BASE)
    assert describe_changes(*versions[:2]) == ["place omitted (the lake has no type for PostgreSQL's point)"]
    assert describe_changes(*versions[1:]) == []
    for known in (versions[:2], versions):
        layout = only_layout(known)
        assert "place" in layout.known_fields()
        assert "place" not in fields_by_column(layout)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (omitting(BASE, "note", 2), BASE, "column note was omitted until now"),
        (omitting(BASE, "note", 2, "virtual generated"), BASE, "column note was omitted until now"),
        (
            BASE,
            omitting(BASE, "note", 2, "the lake has no type for PostgreSQL's point"),
            "column note was captured until now and cannot be captured any more: the lake has no type for PostgreSQL's "
            "point (to keep only its history, name it in exclude_columns)",
        ),
        (
            omitting(BASE, "place", 4, "the lake has no type for PostgreSQL's point"),
            catalog_schema(*declarations(BASE), "5 place text"),
            "column place has the name of an earlier column",
        ),
    ],
)
def test_changes_of_omission_that_need_a_resnapshot(before: TableSchema, after: TableSchema, message: str) -> None:
    with pytest.raises(SchemaChangeError) as caught:
        history(before, after)
    assert message in caught.value.user_message
    assert "`cdc-lake resnapshot shop`" in caught.value.user_message
    assert len(history(before, after.model_copy(update={"epoch": 1}))) == 2


def test_deletes_lack_values_in_each_epoch_that_had_an_unpublished_column() -> None:
    unpublished = OmittedColumn(name="more", reason="generated, and not published", attnum=4, streamed=False)
    versions = history(
        BASE,
        BASE.model_copy(update={"omitted": (unpublished,)}),
        BASE,
        catalog_schema(*declarations(BASE), "5 last text", epoch=1),
    )
    assert [layout.whole_deletes for layout in record_layouts(versions)] == [False, True]


def test_a_column_whose_name_differs_by_case_from_an_omitted_one_is_captured() -> None:
    assert len(history(*[omitting(BASE, "NOTE", 4), catalog_schema(*declarations(BASE), "5 more text")])) == 2


def test_records_from_before_an_exclusion_are_read_after_a_resnapshot_includes_the_column() -> None:
    versions = history(BASE, omitting(BASE, "note", 2), BASE.model_copy(update={"epoch": 1}))
    old, new = record_layouts(versions)
    assert fields_by_column(new)["note"] == (["note"], True)
    assert fields_by_column(old)["note"] == ([], False)
    assert "note" in old.known_fields()


@pytest.mark.parametrize(
    ("old", "new", "readable"),
    [
        ("integer", "bigint", True),
        ("smallint", "integer", True),
        ("character varying(5)", "text", True),
        ("numeric(6,2)", "numeric(8,2)", True),
        ("numeric(6,2)", "numeric(8,3)", False),
        ("numeric(6,2)", "numeric(5,2)", False),
        ("integer", "text", False),
        ("integer", "double precision", False),
        ("boolean", "text", False),
    ],
)
def test_types_that_one_table_of_parquet_objects_can_have(old: str, new: str, readable: bool) -> None:
    before, after = catalog_schema(ID, f"2 v {old}"), catalog_schema(ID, f"2 v {new}", epoch=1)
    if readable:
        require_one_landed_type(before, after, PIPELINE)
        return
    with pytest.raises(
        SchemaChangeError, match=r"^Cannot change the type of column v of public\.orders: the landed objects have "
    ):
        require_one_landed_type(before, after, PIPELINE)


def test_a_dropped_column_keeps_its_type_in_parquet_objects() -> None:
    *_, last = history(catalog_schema(ID, "2 v integer"), catalog_schema(ID))
    with pytest.raises(SchemaChangeError, match="the landed objects have int, and"):
        require_one_landed_type(last, catalog_schema(ID, "3 v text"), PIPELINE)
