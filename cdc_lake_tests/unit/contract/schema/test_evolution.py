"""Schema evolution: accepted changes, rejected ones, and columns kept from earlier versions."""

from __future__ import annotations

import pytest

from cdc_lake.contract.errors import SchemaChangeError
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.schema.evolution import _promotable, describe_changes, differs, require_one_landed_type
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE
from cdc_lake_tests.unit.contract.schema.declared_schemas import (
    BASE,
    ID,
    TABLE,
    catalog_schema,
    declarations,
    history,
    lake,
    omitting,
)


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


def test_a_default_that_the_catalog_no_longer_has_is_no_change() -> None:
    """PostgreSQL removes it when it rewrites the table."""
    before = catalog_schema(*declarations(BASE), "4 more integer = 5")
    after = catalog_schema(*declarations(BASE), "4 more integer")
    assert not differs(before, after)
    assert differs(before, catalog_schema(*declarations(BASE), "4 more bigint = 5"))
    assert describe_changes(BASE, after) == ["more integer added (older rows show NULL)"]


def test_an_excluded_column_is_kept_as_history_like_a_dropped_one() -> None:
    versions = history(BASE, omitting(BASE, "note", 2))
    assert lake(versions[1]) == {"id": "int", "qty": "int", "note": "string"}
    assert describe_changes(*versions) == ["note omitted (kept as history)"]


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


def test_a_column_whose_name_differs_by_case_from_an_omitted_one_is_captured() -> None:
    assert len(history(*[omitting(BASE, "NOTE", 4), catalog_schema(*declarations(BASE), "5 more text")])) == 2


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
