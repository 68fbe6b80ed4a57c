"""Northwind's source connector on real engines: its records, and that nothing is lost, doubled or left behind."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
from typer.testing import CliRunner

from cdc_lake.cli.app import app
from cdc_lake_tests.integration.resources.source_side import CONNECTOR, Source, body
from infra.local.stack.stack_secrets import load
from resources.errors import ConnectorConfigInvalid, ConnectorFailed
from resources.postgres.internal_tables.heartbeat_table import HEARTBEAT
from resources.waiting import until

TESTS_IN_CI = 4

OWN_FIELDS = {"__deleted", "__op", "__db", "__schema", "__table", "__lsn", "__txId", "__snapshot", "__source_ts_ms"}
ROWS = 50


@pytest.fixture
def deployed(source: Source) -> Source:
    """Return a source with a table of 50 rows, a running connector and a completed snapshot."""
    source.execute(
        "create table ev (id int primary key, v int not null, doc jsonb, day date, n numeric(6,2), at timestamptz);"
        "insert into ev select g, 0, jsonb_build_object('g', g), date '1998-06-15', 12.5,"
        f" '2024-01-02 03:04:05.123456+02' from generate_series(1, {ROWS}) g"
    )
    source.postgres.ensure_internal_table(source.schema, HEARTBEAT)
    source.postgres.ensure_publication(source.schema, [(source.schema, table) for table in source.tables])
    source.deploy()
    return source


def test_records_have_the_fields_of_the_contract(deployed: Source) -> None:
    snapshot = deployed.rows()
    assert len(snapshot) == ROWS
    assert all(row["__snapshot"] and row["__op"] == "r" for row in snapshot)

    deployed.execute("update ev set day = '1998-06-16', at = 'infinity' where id = 1")
    deployed.execute("delete from ev where id = 2")
    lsn = deployed.wait_for_heartbeat()
    update, delete = deployed.kafka.tail(deployed.topic(), 2)

    assert update.key == b'{"id":1}'
    assert update.headers == ()
    row = body(update)
    assert set(row) == {"id", "v", "doc", "day", "n", "at"} | OWN_FIELDS
    assert (row["doc"], row["day"], row["n"], row["at"]) == ('{"g": 1}', 10393, "12.50", "infinity")
    assert (row["__op"], row["__deleted"], row["__snapshot"], row["__table"]) == ("u", "false", None, "ev")
    assert snapshot[0]["__lsn"] <= row["__lsn"] < lsn
    assert snapshot[0]["at"] == "2024-01-02T01:04:05.123456Z"

    deleted = body(delete)
    assert delete.key == b'{"id":2}'
    assert (deleted["__op"], deleted["__deleted"], deleted["id"], deleted["doc"]) == ("d", "true", 2, None)
    assert row["__lsn"] < deleted["__lsn"] < lsn

    [heartbeat] = deployed.kafka.tail(deployed.topic("cdc_heartbeat"), 1)
    assert body(heartbeat)["__lsn"] >= lsn


def test_an_equal_configuration_changes_nothing(deployed: Source) -> None:
    before = deployed.connect.status(deployed.schema)
    assert deployed.connect.put(deployed.schema, deployed.config()) == "unchanged"
    assert deployed.connect.put(deployed.schema, deployed.config(**{"max.batch.size": "1024"})) == "updated"
    assert deployed.connect.wait_running(deployed.schema) == before
    deployed.wait_for_heartbeat()
    assert len(deployed.rows()) == ROWS


def test_the_password_is_not_in_the_configuration(deployed: Source) -> None:
    secret = load(deployed.stack.home.secrets_file).debezium_password
    assert secret not in str(deployed.connect.get(deployed.schema))


def test_a_reset_leaves_nothing_and_a_new_deployment_snapshots_again(deployed: Source) -> None:
    assert deployed.connect.offsets(deployed.schema)
    deployed.reset()
    assert deployed.connect.get(deployed.schema) is None
    assert deployed.postgres.slot(deployed.schema) is None
    assert deployed.remaining_topics() == []

    deployed.deploy()
    rows = deployed.rows()
    assert len(rows) == ROWS
    assert {row["__op"] for row in rows} == {"r"}


def test_a_killed_worker_loses_and_doubles_no_change(deployed: Source) -> None:
    done = Event()
    written: list[int] = []

    def write() -> None:
        with deployed.postgres.connect() as connection, connection.cursor() as cursor:
            while not done.wait(0.002):
                key = 1 + len(written) % ROWS
                cursor.execute(f"update {deployed.schema}.ev set v = v + 1 where id = %s", (key,))
                written.append(key)

    writer = Thread(target=write)
    writer.start()
    try:
        for _ in range(2):
            deployed.wait_for_records()
            pid = next(c.pid for c in deployed.stack.status() if c.name == "connect")
            assert pid is not None
            psutil.Process(pid).kill()
            deployed.stack.up(["connect"])
            deployed.wait_for_heartbeat()
    finally:
        done.set()
        writer.join()
    deployed.wait_for_heartbeat()

    seen: dict[int, int] = {}
    streamed = 0
    for row in deployed.rows():
        assert row["v"] == seen.get(row["id"], -1) + 1, f"a change of row {row['id']} is lost or doubled: {row}"
        seen[row["id"]] = row["v"]
        streamed += row["__snapshot"] is None
    assert streamed == len(written) > 0


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "recreated"])
def test_a_lost_slot_stops_the_connector(deployed: Source, again: bool) -> None:
    assert deployed.postgres.drop_slot(deployed.schema, timeout_seconds=10)
    if again:
        deployed.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", deployed.schema)
    deployed.execute("update ev set v = 1")

    status = until(
        lambda: deployed.connect.status(deployed.schema),
        lambda seen: seen is not None and bool(seen.failed_tasks),
        seconds=60,
        what=f"a task of connector {deployed.schema} to fail",
    )
    assert "no longer available" in str(status)
    with pytest.raises(ConnectorFailed, match="no longer available"):
        deployed.connect.wait_running(deployed.schema)
    assert {row["v"] for row in deployed.rows()} == {0}


def test_the_plugins_errors_are_reported_by_field(source: Source) -> None:
    config = source.config(**{"errors.tolerance": "some", "database.port": "1"})
    found = source.connect.validate_config(config["connector.class"], config)
    assert set(found.errors) == {"errors.tolerance", "database.hostname"}
    with pytest.raises(ConnectorConfigInvalid, match=r"errors\.tolerance"):
        source.connect.put(source.schema, config)
    assert source.connect.get(source.schema) is None


def test_lint_reports_the_plugins_errors(
    source_engines: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_LAKE_HOME", str(source_engines.stack.home.path))
    run, url = CliRunner().invoke, source_engines.at.connect_url

    shipped = run(app, ["connectors", "lint"])
    assert shipped.exit_code == 0, shipped.output
    more = ". Not defined by the plugin: offset.mismatch.strategy, transforms.unwrap.replace.null.with.default"
    assert f"{CONNECTOR.name}: valid according to the plugin on {url}{more}\n" in shipped.output, (
        "with the stack's own database"
    )
    user, password = source_engines.at.connect_login
    monkeypatch.setenv("CDC_LAKE_CONNECT_PASSWORD", password)
    elsewhere = run(app, ["connectors", "lint", str(CONNECTOR), "--connect-url", url, "--connect-user", user])
    assert elsewhere.exit_code == 0, elsewhere.output
    assert f"Not checked (set by the pipeline): database.hostname{more}" in elsewhere.output

    wrong = {**json.loads(CONNECTOR.read_text()), "snapshot.mode": "sometimes", "slot.nmae": "s", "database.port": "x"}
    del wrong["topic.prefix"]
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    found = run(app, ["connectors", "lint", str(tmp_path / "wrong.json")])
    assert found.exit_code == 1
    named = {line.split()[0].rstrip(":") for line in found.output.splitlines()[1:]}
    assert named == {"snapshot.mode", "slot.nmae", "database.port", "topic.prefix"}
