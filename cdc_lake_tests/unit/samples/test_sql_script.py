"""Splitting of SQL scripts into statements, and rejected statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.northwind import OUTBOX_SQL
from cdc_lake.samples.sql_script import Statement, read_folder, split

PATH = Path("some.sql")


def statements(text: str) -> list[str]:
    return [statement.text for statement in split(text, PATH)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'a;b', 'it''s;', E'\\';'",
        'SELECT "odd;name", "a "" ; b"',
        "SELECT $$ ; $$, $body$ ; $$ ; $body$",
        "SELECT a$b$c",
        "SELECT 1 -- a; comment",
        "SELECT 1 /* a; /* nested; */ comment; */ + 1",
        "CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO a VALUES (1); INSERT INTO b VALUES (2))",
        "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END",
        "SELECT E'\\\\'",
        "SELECT '\\x', U&'\\0441'",
        "SELECT 'größe', \"größe\", größe",
        "COPY t TO stdout",
        "ROLLBACK TO SAVEPOINT here",
        'CREATE TABLE t ("begin" int, "commit" int)',
    ],
)
def test_a_semicolon_inside_a_statement_does_not_end_it(statement: str) -> None:
    found = statements(f"{statement}\n; SELECT 2")
    assert len(found) == 2
    assert statement.startswith(found[0])
    assert found[1] == "SELECT 2"


def test_statements_have_line_numbers_and_the_last_needs_no_semicolon() -> None:
    text = "-- head\n\nSELECT 1;;\n/* two\nlines */ SELECT\n2;\nSELECT 3"
    assert list(split(text, PATH)) == [Statement("SELECT 1", 3), Statement("SELECT\n2", 5), Statement("SELECT 3", 7)]


def test_an_empty_script_has_no_statements() -> None:
    assert statements(" \n-- nothing\n;") == []


@pytest.mark.parametrize(
    "unclosed", ["SELECT 'it''s", "SELECT E'\\'", 'SELECT "a', "SELECT $q$ open $$", "/* a /* b */"]
)
def test_an_unclosed_text_is_left_to_the_server(unclosed: str) -> None:
    assert list(split(f"SELECT 1;\n{unclosed}; COMMIT;", PATH))[1:] == [Statement(f"{unclosed}; COMMIT;", 2)]


def test_our_own_outbox_script_is_split_correctly() -> None:
    found = statements(OUTBOX_SQL.read_text(encoding="utf-8"))
    assert found[0].startswith("CREATE TABLE datalake.cdc_events")
    assert found[-1].startswith("CREATE PUBLICATION")
    assert all(text.startswith(("CREATE", "ALTER", "SELECT")) for text in found)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("COMMIT", "COMMIT: the load is one transaction"),
        ("begin", "BEGIN: the load is one transaction"),
        ("START TRANSACTION", "START"),
        ("rollback", "ROLLBACK"),
        ("PREPARE TRANSACTION 'x'", "PREPARE"),
        ("COPY t (a, b) FROM stdin; SELECT 2", "Put the data on the lines after the semicolon"),
        ("\\connect other", "psql command"),
        ("SELECT 1 \\gexec", "psql command"),
        ("SET standard_conforming_strings = off", "E'…'"),
        ("ABORT", "ABORT"),
        ("COPY t\nFROM\nSTDIN; 1", "Put the data on the lines after the semicolon"),
    ],
)
def test_unsupported_statements_are_rejected_with_file_and_line(statement: str, message: str) -> None:
    with pytest.raises(LoadError) as refused:
        statements(f"SELECT 1;\n\n{statement};")
    assert refused.value.user_message.startswith("Cannot run some.sql, line 3: ")
    assert message in refused.value.user_message


def test_the_rows_of_copy_are_data_until_their_end() -> None:
    text = "SELECT 1;\nCOPY t (a, b) FROM stdin;\n1\tit's; -- $$\n\\N\t\\\\.\n\\.\nSELECT 2;\nCOPY u\nFROM STDIN;\n3"
    assert list(split(text, PATH)) == [
        Statement("SELECT 1", 1),
        Statement("COPY t (a, b) FROM stdin", 2, "1\tit's; -- $$\n\\N\t\\\\.\n"),
        Statement("SELECT 2", 6),
        Statement("COPY u\nFROM STDIN", 7, "3"),
    ]
    windows = list(split("COPY t FROM stdin;\r\n1\r\n\\.\r\nSELECT 2;", PATH))
    assert windows == [Statement("COPY t FROM stdin", 1, "1\r\n"), Statement("SELECT 2", 4)]
    assert list(split("COPY t FROM stdin", PATH)) == [Statement("COPY t FROM stdin", 1, "")]


def test_restrict_of_pg_dump_is_skipped() -> None:
    assert statements("\\restrict k3y\n\nSET x = 1;\n\\unrestrict k3y\n") == ["SET x = 1"]


def test_scripts_of_a_folder_are_read_in_name_order(tmp_path: Path) -> None:
    (tmp_path / "10_b.sql").write_text("SELECT 2")
    (tmp_path / "02_a.sql").write_text("\ufeffSELECT 1", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("COMMIT")
    assert [script.statements[0].text for script in read_folder(tmp_path)] == ["SELECT 1", "SELECT 2"]


def test_folders_without_scripts_and_binary_files_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="is not a folder"):
        read_folder(tmp_path / "missing")
    with pytest.raises(LoadError, match=r"no \.sql file"):
        read_folder(tmp_path)
    (tmp_path / "a.sql").write_bytes(b"SELECT 1;\n'\xe9'")
    with pytest.raises(LoadError, match=r"a\.sql, line 2: it is not UTF-8"):
        read_folder(tmp_path)
    (tmp_path / "a.sql").write_bytes(b"SELECT 1;\n\x00")
    with pytest.raises(LoadError, match=r"a\.sql, line 2: it contains a NUL"):
        read_folder(tmp_path)
