"""Loading into a real server: everything is loaded, or nothing after any error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from psycopg2.extensions import connection

from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.load_report import LoadReport
from cdc_lake.samples.northwind.loader import load, unload
from cdc_lake_tests.helpers.sql_scripts import write_published_folder


def query(conn: connection, statement: str) -> list[tuple[Any, ...]]:
    with conn, conn.cursor() as cur:
        cur.execute(statement)
        return cur.fetchall()


OUTBOX = ("cdc_events", 829)


def is_empty(parameters: ConnectionParameters) -> bool:
    with closing(parameters.connect()) as conn:
        schemas = query(conn, "SELECT 1 FROM pg_namespace WHERE nspname = 'datalake'")
        return not schemas and not query(conn, "SELECT 1 FROM pg_publication")


def test_generated_data_is_loaded(database: ConnectionParameters, conn: connection) -> None:
    seen: list[tuple[str, int, int]] = []
    report = load(database, progress=lambda *step: seen.append(step))
    assert len(report.tables) == 15
    assert dict(report.tables)["order_details"] == 2152
    assert report.tables[-1] == OUTBOX
    assert report.wal_level == "logical"
    assert ("generated data", 14, 14) in seen
    assert query(conn, "SELECT * FROM pg_publication_tables")[0][:3] == ("cdc_publication", "datalake", "cdc_events")
    assert query(conn, "SELECT relreplident FROM pg_class WHERE relname = 'cdc_events'") == [("f",)]


def test_scripts_like_the_original_ones_are_loaded(
    database: ConnectionParameters, conn: connection, original_scripts: Path
) -> None:
    with conn, conn.cursor() as cur:
        cur.execute("CREATE TABLE public.orders AS SELECT 'not yours to drop' AS kept")
    report = load(database, original_scripts)
    assert report.tables[-1] == OUTBOX
    assert query(conn, "SELECT kept FROM public.orders") == [("not yours to drop",)]
    assert query(conn, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(1,)]


def test_a_folder_with_schema_role_and_outbox_is_loaded_unchanged(
    database: ConnectionParameters, conn: connection, tmp_path: Path
) -> None:
    role = f"{database.dbname}_user"
    write_published_folder(tmp_path, database.dbname, role)
    report = load(database, tmp_path)
    assert (report.own_outbox, report.roles, report.tables[-1]) == (True, (role,), OUTBOX)
    assert dict(report.tables)["order_details"] == 2152
    assert query(conn, f"SELECT has_schema_privilege('{role}', 'datalake', 'CREATE'), rolcanlogin "
                       f"FROM pg_roles WHERE rolname = '{role}'") == [(True, False)]  # fmt: skip
    assert query(
        conn,
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 'datalake.cdc_events'::regclass AND attnum BETWEEN 1 AND 2 ORDER BY attnum",
    ) == [("order_id", "smallint"), ("customer_id", "bpchar")]
    triggers = query(
        conn, "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'datalake.%'"
    )
    assert sorted(triggers) == [("order_details_event",), ("orders_event",)], "our triggers were created"
    # Unloaded, and loaded a second time.
    assert unload(conn) is True
    with closing(database.connect()) as fresh:
        assert query(fresh, "SHOW search_path") == [('"$user", public',)]
    assert load(database, tmp_path).roles == ()


def test_a_folder_may_create_its_role(database: ConnectionParameters, conn: connection, tmp_path: Path) -> None:
    role = f"{database.dbname}_made"
    write_published_folder(tmp_path, database.dbname, role)
    schema = tmp_path / "00_create_schema.sql"
    schema.write_text(f"CREATE ROLE {role} LOGIN;\n{schema.read_text()}")
    for _ in range(2):
        assert load(database, tmp_path).roles == ()
        assert query(conn, f"SELECT rolcanlogin FROM pg_roles WHERE rolname = '{role}'") == [(True,)]
        unload(conn)


def test_a_folder_for_another_database_is_refused(database: ConnectionParameters, tmp_path: Path) -> None:
    write_published_folder(tmp_path, "postgres")
    with pytest.raises(LoadError, match=r"00_create_schema\.sql, line 5: it changes database postgres, .*--dbname"):
        load(database, tmp_path)
    assert is_empty(database)


def test_an_outbox_without_a_publication_is_refused(database: ConnectionParameters, tmp_path: Path) -> None:
    write_published_folder(tmp_path, database.dbname)
    outbox = tmp_path / "03_cdc_events.sql"
    outbox.write_text(outbox.read_text().replace("CREATE PUBLICATION", "-- CREATE PUBLICATION"))
    with pytest.raises(LoadError, match=r"create datalake\.cdc_events, but no publication for it\. Add CREATE"):
        load(database, tmp_path)
    assert is_empty(database)


def test_generated_data_and_scripts_give_the_same_outbox(
    database: ConnectionParameters, new_database: Callable[..., ConnectionParameters], original_scripts: Path
) -> None:
    other = new_database()
    load(database)
    load(other, original_scripts)
    statement = "SELECT (to_jsonb(e) - 'updated_at')::text FROM datalake.cdc_events e ORDER BY order_id"
    with closing(database.connect()) as one, closing(other.connect()) as two:
        assert query(one, statement) == query(two, statement)


def test_a_second_load_changes_nothing(database: ConnectionParameters, conn: connection) -> None:
    load(database)
    before = query(conn, "SELECT max(updated_at) FROM datalake.cdc_events")
    with pytest.raises(LoadError, match=r"schema datalake exists already.*To load the sample again, drop"):
        load(database)
    assert query(conn, "SELECT max(updated_at) FROM datalake.cdc_events") == before


def test_one_of_two_concurrent_loads_fails(database: ConnectionParameters) -> None:
    results: list[LoadReport | LoadError] = []

    def attempt() -> None:
        try:
            results.append(load(database))
        except LoadError as error:
            results.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (lost,) = [result for result in results if isinstance(result, LoadError)]
    assert "already" in lost.user_message


def test_connection_errors_contain_the_remedy(server: ConnectionParameters) -> None:
    with pytest.raises(LoadError, match=r"(?s)password authentication failed.*PGPASSWORD"):
        load(ConnectionParameters(server.host, server.port, "postgres", server.user, "wrong"))
    with pytest.raises(LoadError, match=r"(?s)does not exist.*Create the database"):
        load(ConnectionParameters(server.host, server.port, "nowhere", server.user, server.password))
    with pytest.raises(LoadError, match=r"(?s)Cannot connect to .*on 127\.0\.0\.1:1 .*Check --host and --port"):
        load(ConnectionParameters(server.host, 1, "postgres", server.user, server.password))


@pytest.mark.parametrize(
    ("broken", "line", "message"),
    [
        ("SELECT 1;\n\nSELECT 1,\n  nonsense;", 4, 'column "nonsense" does not exist'),
        ("SELECT 1;\nINSERT INTO region\nVALUES (1, 'again');", 2, "duplicate key"),
        ("SELECT 1;\nVACUUM;", 2, "VACUUM cannot run inside a transaction block"),
        ("\n\nDO $$ BEGIN\nCOMMIT; END $$;", 3, "invalid transaction termination"),
        ("CREATE SCHEMA datalake;", 1, "already exists"),
        ("SELECT 1;\n\nSELECT 'open;\nCOMMIT;", 3, "unterminated quoted string"),
        ("SELECT 1;\nSELECT\n$q$ open;", 3, "unterminated dollar-quoted string"),
        ("SELECT 1;\n\n/* open;", 3, "unterminated /* comment"),
    ],
)
def test_the_error_of_a_script_names_its_line_and_nothing_is_loaded(
    database: ConnectionParameters, original_scripts: Path, tmp_path: Path, broken: str, line: int, message: str
) -> None:
    for script in original_scripts.iterdir():
        (tmp_path / script.name).symlink_to(script)
    (tmp_path / "03_mine.sql").write_text(broken)
    with pytest.raises(LoadError) as failed:
        load(database, tmp_path)
    assert f"03_mine.sql, line {line}: " in failed.value.user_message
    assert message in failed.value.user_message
    assert is_empty(database)


def test_scripts_with_tables_in_another_schema_are_refused(database: ConnectionParameters, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SET search_path TO public; CREATE TABLE orders (order_id int);")
    with pytest.raises(LoadError, match=r"schema datalake has no table categories, .*orders"):
        load(database, tmp_path)
    assert is_empty(database)


def test_settings_of_a_script_do_not_affect_the_next(
    database: ConnectionParameters, original_scripts: Path, tmp_path: Path
) -> None:
    for script in original_scripts.iterdir():
        (tmp_path / script.name).symlink_to(script)
    (tmp_path / "00_first.sql").write_text(
        "SET search_path TO public; SET client_encoding TO 'LATIN1'; SET datestyle TO 'german'; SET ROLE pg_monitor;"
    )
    (tmp_path / "03_last.sql").write_text(
        "SELECT 1 / (current_setting('default_transaction_isolation') = 'read committed')::int;"
        "SELECT 1 / (length('ß') = 1)::int; SELECT 1 / (current_user <> 'pg_monitor')::int",
        encoding="utf-8",
    )
    assert load(database, tmp_path).tables[-1] == OUTBOX


def test_unload_removes_the_sample(database: ConnectionParameters, conn: connection) -> None:
    assert unload(conn) is False
    load(database)
    assert unload(conn) is True
    assert is_empty(database)
    assert load(database).tables[-1] == OUTBOX


def test_a_schema_that_was_not_created_by_a_load_is_kept(database: ConnectionParameters, conn: connection) -> None:
    with conn, conn.cursor() as cur:
        cur.execute("CREATE SCHEMA datalake")
    with pytest.raises(LoadError, match="load into another database"):
        load(database)
    with pytest.raises(LoadError, match="not created by"):
        unload(conn)
    assert query(conn, "SELECT 1 FROM pg_namespace WHERE nspname = 'datalake'")


def test_an_existing_publication_of_that_name_is_kept(database: ConnectionParameters, conn: connection) -> None:
    with conn, conn.cursor() as cur:
        cur.execute("CREATE PUBLICATION cdc_publication")
    with pytest.raises(LoadError, match="publication cdc_publication exists already"):
        load(database)
    assert not query(conn, "SELECT 1 FROM pg_namespace WHERE nspname = 'datalake'")
