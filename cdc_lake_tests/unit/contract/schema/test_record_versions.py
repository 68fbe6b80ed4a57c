"""The layout by which records of each captured version are read."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lake.contract.schema.captured_schema import OmittedColumn, TableSchema
from cdc_lake.contract.schema.evolution import describe_changes
from cdc_lake.contract.schema.record_versions import RecordLayout, record_layouts
from cdc_lake_tests.unit.contract.schema.declared_schemas import (
    BASE,
    ID,
    catalog_schema,
    declarations,
    history,
    omitting,
)


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


def test_columns_of_a_recreated_table_are_matched_by_name() -> None:
    versions = history(BASE, catalog_schema("1 id integer", "2 qty integer", "3 other text", oid=9, epoch=1))
    old, _ = record_layouts(versions)
    assert fields_by_column(old) == {
        "id": (["id"], True),
        "qty": (["qty"], True),
        "other": ([], False),
        "note": (["note"], False),
    }


def test_the_field_of_an_excluded_column_is_read_and_not_required() -> None:
    """The connector may send it until it has the new configuration."""
    assert fields_by_column(only_layout(history(BASE, omitting(BASE, "note", 2)))) == {
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


def test_deletes_lack_values_in_each_epoch_that_had_an_unpublished_column() -> None:
    unpublished = OmittedColumn(name="more", reason="generated, and not published", attnum=4, streamed=False)
    versions = history(
        BASE,
        BASE.model_copy(update={"omitted": (unpublished,)}),
        BASE,
        catalog_schema(*declarations(BASE), "5 last text", epoch=1),
    )
    assert [layout.whole_deletes for layout in record_layouts(versions)] == [False, True]


def test_records_from_before_an_exclusion_are_read_after_a_resnapshot_includes_the_column() -> None:
    versions = history(BASE, omitting(BASE, "note", 2), BASE.model_copy(update={"epoch": 1}))
    old, new = record_layouts(versions)
    assert fields_by_column(new)["note"] == (["note"], True)
    assert fields_by_column(old)["note"] == ([], False)
    assert "note" in old.known_fields()
