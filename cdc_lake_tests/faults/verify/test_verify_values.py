"""Verification of a table with a column of every type: equal values are equal, and others are reported."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from cdc_lake.demo.graph import Graph
from cdc_lake.jobs.verify import VerifyReport
from cdc_lake.pipeline import component
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.operations.verification import VerifySystems, verify_tables
from cdc_lake.profile import resolved, run_resources, spark
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 1

NAME = "every_type"
YAML = f"""\
type: cdc_lake.CdcPipeline
attributes:
  name: {NAME}
  source: {{ database: devdb, schema: {NAME}, tables: [typed], publication: {NAME} }}
  stream: {{ prefix: {NAME}, partitions: 2 }}
  tables: [{{ name: typed, key: [id, part], values: {{ infinity: max, nan: null }} }}]
  targets:
    - name: lake
      database: {NAME}
"""
STREAMED_ONLY = ("'0044-03-15 BC'", "'1582-10-10'")
"""Dates that Debezium's snapshot reads wrongly: those before the year 1 and those missing in Java's old calendar."""
# Types, each with values that are not NULL.
TYPES = {
    "smallint": ["-32768", "0"],
    "integer": ["2147483647"],
    "bigint": ["-9223372036854775808"],
    "real": ["0.1", "1e38", "-1e-30", "'NaN'", "'-Infinity'"],
    "double precision": ["0.1", "1.7976931348623157e308", "'NaN'", "'Infinity'", "5e-324"],
    "numeric": ["1.50", "0.000000000", "0.00000015", "123456789012345678901234567890.123456789012345678901", "'NaN'"],
    "numeric(6,2)": ["-1234.50", "0", "'NaN'"],
    "numeric(38,10)": ["1234567890123456789012345678.0123456789", "0.0000000001"],
    "money": ["'-12.34'"],
    "boolean": ["true", "false"],
    "text": ["''", "'NULL'", "'\\N'", "E'a\"b,c\\nd\\re\\tf\\\\g'", "'Zażółć 🦆'", "repeat('long ', 4000)", "' '"],
    "character varying(10)": ["'x '"],
    "character(5)": ["'ab'"],
    "uuid": ["'6f1c1f1e-0000-4000-8000-000000000001'"],
    "json": ['\'{"a":  [1, 1.0, null], "a": 2}\''],
    "jsonb": ['\'{"b": [1, 1.0, {"c": null}], "a": "ß"}\''],
    "date": [
        "'2024-02-29'",
        *STREAMED_ONLY,
        "'1582-10-04'",
        "'0500-03-01'",
        "'9999-12-31'",
        "'infinity'",
        "'-infinity'",
    ],
    "timestamp": ["'2024-02-29 23:59:59.123456'", "'0001-01-01'", "'1883-11-18 12:00:00.000001'", "'infinity'"],
    "timestamp(3)": ["'2024-02-29 23:59:59.123'", "'-infinity'"],
    "timestamptz": ["'2024-02-29 23:59:59.123456+02'", "'1900-01-01 00:00:00.1 Europe/Paris'", "'infinity'"],
    "time": ["'23:59:59.999999'", "'00:00'"],
    "time(3)": ["'23:59:59.999'"],
    "timetz": ["'23:59:59.5+02'", "'00:30:00-05:30'", "'12:00Z'"],
    "interval": ["'1 year 2 months 3 days 04:05:06.78'", "'-1 day -00:00:01.5'", "'0'", "'-3 months'"],
    "bytea": ["'\\x00ff10'", "''"],
    "inet": ["'192.168.1.1/24'", "'::1'"],
    "cidr": ["'10.0.0.0/8'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "bit": ["B'1'", "B'0'"],
    "bit(10)": ["B'0000000000'", "B'1000000011'"],
    "int4range": ["'[1,5)'", "'empty'"],
    "tstzrange": ["'[2024-01-01 00:00+00,2024-02-01 00:00+00)'"],
    f"{NAME}.mood": ["'glad'"],
    f"{NAME}.price": ["12.30"],
    "integer[]": ["'{1,2,NULL}'", "'{}'"],
    "text[]": ["array['a', '', 'NULL', null, E'q\"\\n,{}']"],
    "double precision[]": ["array[0.1, 1e300]::float8[]"],
    "boolean[]": ["array[true, false]"],
    "timestamptz[]": ["array['2024-02-29 23:59:59.123456+02'::timestamptz]"],
    f"{NAME}.mood[]": [f"array['glad', 'sad']::{NAME}.mood[]"],
}
MOST = max(len(values) for values in TYPES.values())


class TypedPipeline:
    """The pipeline and its only table, on a running stack."""

    def __init__(self, folder: Path) -> None:
        (folder / NAME).mkdir()
        (folder / NAME / "defs.yaml").write_text(YAML)
        self.pipeline = load(NAME, folder)

    def execute(self, *statements: str) -> None:
        """Run SQL at the source."""
        with self.pipeline.source_postgres(resolved()["postgres"]).connect() as db, db.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def create(self) -> None:
        """Create the table with half of its rows, start the connector, and insert the other half for the stream."""
        self.execute(
            f"create schema {NAME}",
            f"create type {NAME}.mood as enum ('glad', 'sad')",
            f"create domain {NAME}.price as numeric(8,2) check (value > 0)",
            f"create table {NAME}.typed (id integer, part text, {_columns()}, primary key (id, part))",
            *(_insert(row, "snapshot") for row in range(MOST + 1)),
        )
        parts = component.build(self.pipeline)
        job = dg.define_asset_job(NAME, selection="*")
        definitions = dg.Definitions(
            assets=parts.assets, jobs=[job], resources=run_resources(), executor=dg.in_process_executor
        )
        Graph(NAME, definitions, dg.DagsterInstance.ephemeral()).materialise("source", "topic")
        self.execute(*(_insert(row, "stream, ''") for row in range(MOST + 1)))

    def verify(self) -> VerifyReport:
        """Run the verification."""
        found = resolved()
        systems = VerifySystems(
            self.pipeline.source_postgres(found["postgres"]), found["kafka"], found["connect"], found["store"], spark()
        )
        ((_, report),) = verify_tables(self.pipeline, self.pipeline.tables, systems, seconds=300, apply=True, limit=100)
        return report


def _columns() -> str:
    return ", ".join(f"c{number} {name}" for number, name in enumerate(TYPES))


def _insert(row: int, part: str) -> str:
    """Return the insert of a row with each type's value number `row`, or NULL if there are fewer values."""
    literals = [values[row] if row < len(values) else "NULL" for values in TYPES.values()]
    values = ["NULL" if value in STREAMED_ONLY and part == "snapshot" else value for value in literals]
    text = part.replace("'", "''")
    return f"insert into {NAME}.typed values ({row}, '{text}', {', '.join(values)})"


@pytest.fixture(scope="module")
def typed(stack: NorthwindStack, tmp_path_factory: pytest.TempPathFactory) -> TypedPipeline:
    """Return the pipeline, with rows from the snapshot and from the stream."""
    assert stack.cli
    made = TypedPipeline(tmp_path_factory.mktemp("defs"))
    made.create()
    return made


@pytest.mark.timeout(900)
def test_equal_values_of_every_type_have_no_difference(typed: TypedPipeline, count_trials: CountTrials) -> None:
    found = typed.verify()
    assert found.clean, "\n".join(map(str, found.differences))
    assert found.source_rows == 2 * (MOST + 1)
    count_trials("values of every type compared", 2 * sum(len(values) for values in TYPES.values()))


@pytest.mark.timeout(900)
def test_a_difference_in_a_column_of_every_type_is_reported(typed: TypedPipeline) -> None:
    typed.execute(
        "set session_replication_role = replica",
        *(f"insert into {NAME}.typed (id, part) values ({100 + number}, 'x')" for number in range(len(TYPES))),
    )
    typed.verify()
    publication = f"alter publication {NAME}"
    typed.execute(
        f"{publication} set (publish = 'insert, delete')",
        *(
            f"update {NAME}.typed set c{number} = {values[0]} where id = {100 + number}"
            for number, values in enumerate(TYPES.values())
        ),
        f"{publication} set (publish = 'insert, update, delete')",
    )
    found = typed.verify()
    assert {one.key["id"]: list(one.columns) for one in found.differences} == {
        str(100 + number): [f"c{number}"] for number in range(len(TYPES))
    }
    typed.execute(f"delete from {NAME}.typed where id >= 100")


@pytest.mark.timeout(900)
def test_values_that_change_without_an_event_are_reported(typed: TypedPipeline) -> None:
    """Neither a renamed enum label nor a table rewrite that computes values writes the rows to the WAL."""
    numbers = {name: number for number, name in enumerate(TYPES)}
    mood, moods, small = (numbers[name] for name in (f"{NAME}.mood", f"{NAME}.mood[]", "smallint"))
    assert typed.verify().clean
    typed.execute(f"alter type {NAME}.mood rename value 'glad' to 'merry'")
    found = typed.verify()
    assert {name for one in found.differences for name in one.columns} == {f"c{mood}", f"c{moods}"}
    assert ("merry", "glad") in [one.columns.get(f"c{mood}") for one in found.differences]
    typed.execute(
        f"alter type {NAME}.mood rename value 'merry' to 'glad'",
        f"alter table {NAME}.typed alter c{small} type smallint using c{small} / 2",
    )
    found = typed.verify()
    assert {(name, *values) for one in found.differences for name, values in one.columns.items()} == {
        (f"c{small}", "-16384", "-32768")
    }
