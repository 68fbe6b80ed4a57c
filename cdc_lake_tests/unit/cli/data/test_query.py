"""`cdc-lake query`: statements allowed without --write, and output formats."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal

import pytest
import typer
from typer.testing import CliRunner

from cdc_lake.cli.data import query as query_command
from cdc_lake.cli.data.query import read_only_fault, register, syntax_fault
from resources.athena import AthenaQueryFailed, QueryResult

RESULT = QueryResult(
    columns=(("id", "integer"), ("price", "decimal"), ("day", "date"), ("at", "timestamp"), ("note", "varchar")),
    rows=(
        (1, Decimal("10.50"), date(1998, 5, 6), datetime(1998, 5, 6, 10, 11, 12), 'say "hi", [bold]you[/bold]'),
        (2, None, None, None, ""),
    ),
    query_id="q-1",
    bytes_scanned=1234,
    seconds=0.5,
)


class FakeAthena:
    """A fake that records its statements."""

    def __init__(self, result: QueryResult | Exception) -> None:
        self.result = result
        self.statements: list[str] = []
        self.reuse_minutes = -1

    def query(self, sql: str, *, reuse_minutes: int = 0) -> QueryResult:
        self.statements.append(sql)
        self.reuse_minutes = reuse_minutes
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return app


@pytest.fixture
def athena(monkeypatch: pytest.MonkeyPatch) -> FakeAthena:
    fake = FakeAthena(RESULT)
    monkeypatch.setattr(query_command, "_athena", lambda _database: fake)
    return fake


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT/* x */1",
        "select*from t",
        "with a as (select 1) select * from a",
        "VALUES 1, 2",
        "TABLE orders",
        "(select 1) union (select 2)",
        "/* why */ SHOW TABLES",
        "SHOW CREATE VIEW v",
        "DESCRIBE orders",
        "EXPLAIN INSERT INTO t SELECT 1",
        "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN ANALYZE (FORMAT JSON) SELECT 1",
        "EXPLAIN ANALYZE VERBOSE (FORMAT JSON) SELECT 1",
        "SELECT 1; -- done",
        "SELECT 1 ; /* y */",
        "SELECT 'drop table x; insert'",
        "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (a) DEFINE a AS true)",
    ],
)
def test_reading_statements_are_accepted(sql: str) -> None:
    assert read_only_fault(sql) is None


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("INSERT INTO t SELECT 1", "INSERT"),
        ("create table t as select 1", "CREATE"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE"),
        ("/* x */ -- y\nDROP VIEW v", "DROP"),
        ("DELETE FROM t", "DELETE"),
        ("MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE", "MERGE"),
        ("UNLOAD (SELECT 1) TO 's3://b/x' WITH (format = 'PARQUET')", "UNLOAD"),
        ("MSCK REPAIR TABLE t", "MSCK"),
        ("ALTER TABLE t ADD COLUMNS (x int)", "ALTER"),
        ("CALL f()", "CALL"),
        ("EXECUTE prepared", "EXECUTE"),
        ("EXPLAIN ANALYZE INSERT INTO t SELECT 1", "EXPLAIN ANALYZE INSERT"),
        ("EXPLAIN ANALYZE (FORMAT JSON) INSERT INTO t SELECT 1", "EXPLAIN ANALYZE INSERT"),
        ("EXPLAIN /* x */ ANALYZE -- y\nVERBOSE /* z */ DELETE FROM t", "EXPLAIN ANALYZE DELETE"),
    ],
)
def test_changing_statements_are_rejected_without_write(
    sql: str, word: str, app: typer.Typer, athena: FakeAthena
) -> None:
    result = CliRunner().invoke(app, ["query", sql])

    assert read_only_fault(sql) == f"Cannot run {word}: it is not a read-only statement. Add --write to run it."
    assert result.exit_code == 2
    assert not athena.statements


def test_text_that_cannot_be_parsed_is_rejected_without_write() -> None:
    assert read_only_fault("(((") == (
        "Cannot tell whether the statement only reads: it cannot be parsed. Correct it, or add --write to run it."
    )


@pytest.mark.parametrize(
    "sql", ["SELECT 1; DROP TABLE t", "SELECT 1 FRM (; DROP TABLE t", "EXPLAIN ANALYZE SELECT 1 FRM ('; SELECT 1')"]
)
def test_several_statements_are_rejected(sql: str, app: typer.Typer, athena: FakeAthena) -> None:
    result = CliRunner().invoke(app, ["query", sql])

    assert read_only_fault(sql) == "Cannot run several statements in one query. Run them one at a time."
    assert result.exit_code == 2
    assert not athena.statements


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC 1", "line 1, column 1: no statement begins with 'SELEC'. Did you mean SELECT?"),
        ("/* why */\n  selec 1", "line 2, column 3: no statement begins with 'selec'. Did you mean SELECT?"),
        ("DORP TABLE t", "line 1, column 1: no statement begins with 'DORP'. Did you mean DROP?"),
        ("NONSENSE ((", "line 1, column 1: no statement begins with 'NONSENSE'. A query begins with SELECT"),
        ("1 + 1", "line 1, column 1: no statement begins with '1'."),
        ("-- nothing\n", "Cannot find an SQL statement before the end of the text (line 2, column 1)."),
        (" ;", "Cannot find an SQL statement"),
    ],
)
def test_text_that_is_not_sql_is_rejected_with_its_position(
    sql: str, message: str, app: typer.Typer, athena: FakeAthena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")

    result = CliRunner().invoke(app, ["query", "--", sql])

    assert result.exit_code == 2
    assert message in result.stderr
    assert "--write" not in result.stderr
    assert not athena.statements


@pytest.mark.parametrize("sql", ["SELECT 1 FRM (", "((SELECT 1", "SHOW whatever", "SELECT'a' FRM ("])
def test_later_syntax_errors_are_left_to_athena(sql: str, app: typer.Typer, athena: FakeAthena) -> None:
    assert syntax_fault(sql) is None
    assert CliRunner().invoke(app, ["query", sql]).exit_code == 0
    assert athena.statements == [sql]


def test_write_runs_changing_statements(app: typer.Typer, athena: FakeAthena) -> None:
    athena.result = QueryResult((), (), "q-2", 0, 0.1)

    result = CliRunner().invoke(app, ["query", "--write", "DROP VIEW v"])

    assert result.exit_code == 0
    assert athena.statements == ["DROP VIEW v"]
    assert "Done" in result.stderr


def test_the_table_output_shows_null_and_does_not_interpret_markup(app: typer.Typer, athena: FakeAthena) -> None:
    result = CliRunner().invoke(app, ["query", "SELECT 1"])

    assert athena.statements == ["SELECT 1"]
    assert 'say "hi", [bold]you[/bold]' in result.stdout
    assert "NULL" in result.stdout
    assert "10.50" in result.stdout
    assert "2 rows, 1,234 bytes scanned" in result.stderr


def test_an_earlier_result_is_reused_only_with_its_option(app: typer.Typer, athena: FakeAthena) -> None:
    CliRunner().invoke(app, ["query", "SELECT 1"])
    assert athena.reuse_minutes == 0
    CliRunner().invoke(app, ["query", "SELECT 1", "--reuse", "15"])
    assert athena.reuse_minutes == 15


@pytest.mark.usefixtures("athena")
def test_csv_distinguishes_null_from_empty(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["query", "SELECT 1", "--format", "csv"])

    assert result.stdout.splitlines() == [
        "id,price,day,at,note",
        '1,10.50,1998-05-06,1998-05-06 10:11:12,"say ""hi"", [bold]you[/bold]"',
        '2,,,,""',
    ]


@pytest.mark.usefixtures("athena")
def test_json_keeps_all_digits_of_decimals(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["query", "SELECT 1", "-f", "json"])

    assert '"price": 10.50' in result.stdout
    rows = json.loads(result.stdout, parse_float=Decimal)
    assert rows[0]["price"] == Decimal("10.50")
    assert (rows[0]["day"], rows[0]["at"]) == ("1998-05-06", "1998-05-06T10:11:12")
    assert rows[1] == {"id": 2, "price": None, "day": None, "at": None, "note": ""}


@pytest.mark.parametrize(
    ("columns", "row", "printed"),
    [
        ((("x", "double"),), (float("nan"),), '[{"x": "nan"}]'),
        ((("x", "array"),), ([1, None, "é"],), '[{"x": [1, null, "é"]}]'),
        ((("x", "row"),), ({"a": True},), '[{"x": {"a": true}}]'),
        ((("x", "varbinary"),), (b"\x01\xff",), '[{"x": "01ff"}]'),
    ],
)
def test_json_output_of_other_types(
    columns: tuple[tuple[str, str], ...], row: tuple[object, ...], printed: str, app: typer.Typer, athena: FakeAthena
) -> None:
    athena.result = QueryResult(columns, (row,), "q", 0, 0.1)

    result = CliRunner().invoke(app, ["query", "SELECT 1", "-f", "json"])

    assert json.loads(result.stdout) == json.loads(printed)


def test_json_output_rejects_duplicate_column_names(app: typer.Typer, athena: FakeAthena) -> None:
    athena.result = QueryResult((("a", "integer"), ("a", "integer")), ((1, 2),), "q", 0, 0.1)

    result = CliRunner().invoke(app, ["query", "SELECT 1 a, 2 a", "-f", "json"])

    assert "Give each another name with AS" in getattr(result.exception, "user_message", "")


def test_the_error_of_a_failed_query_is_raised(app: typer.Typer, athena: FakeAthena) -> None:
    athena.result = AthenaQueryFailed("SELECT x", "q-9", "COLUMN_NOT_FOUND: x", "Look again.")

    result = CliRunner().invoke(app, ["query", "SELECT x"])

    assert result.exception is athena.result
    assert result.stdout == ""


def test_the_database_can_be_named(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    databases: list[str | None] = []

    def athena(database: str | None) -> FakeAthena:
        databases.append(database)
        return FakeAthena(RESULT)

    monkeypatch.setattr(query_command, "_athena", athena)
    for options in ([], ["--database", "other"]):
        assert CliRunner().invoke(app, ["query", "SELECT 1", *options]).exit_code == 0
    assert databases == [None, "other"]
