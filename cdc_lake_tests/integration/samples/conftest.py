"""Fixtures: a PostgreSQL server of these tests, and empty or loaded databases in it."""

from __future__ import annotations

import itertools
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg2.extensions import connection
from tenacity import retry, stop_after_delay, wait_fixed

from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.northwind import SCHEMA_SQL
from cdc_lake.samples.northwind.generate import dataset
from cdc_lake.samples.northwind.loader import load
from infra.local.components.postgres import SUPERUSER, PostgresComponent
from infra.local.stack.component import LOOPBACK, Secrets, StackContext

PASSWORD = "for these tests"
ORIGINAL_SETTINGS = """
SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SET check_function_bodies = false;
SET client_min_messages = warning;
SET default_with_oids = false;
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE;
"""

NewDatabase = Callable[..., ConnectionParameters]


@pytest.fixture(scope="package")
def server() -> Iterator[ConnectionParameters]:
    """Run the server, and return its database `postgres` with the superuser."""
    home = Path(tempfile.mkdtemp(prefix="cdc-lake-samples-"))
    home.chmod(0o755)  # started by root, the server runs as another user, who must be able to enter its folder
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    context = StackContext(home, {"postgres": port}, Secrets(PASSWORD, "debezium", "", "", ""))
    component = PostgresComponent()
    component.prepare(context)
    launch = component.launch(context)
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            # The data need not survive a crash, and syncing the files of all databases would take half a minute.
            (*launch.argv, "-c", "fsync=off"),
            env=dict(launch.env) or None,
            user=launch.user,
            stdout=log,
            stderr=log,
            cwd="/",
        )
    try:
        retry(stop=stop_after_delay(30), wait=wait_fixed(0.1), reraise=True)(component.probe)(context)
        yield ConnectionParameters(LOOPBACK, port, "postgres", SUPERUSER, PASSWORD)
    finally:
        process.send_signal(component.stop_signal)
        process.wait(timeout=60)
        shutil.rmtree(home)


@pytest.fixture(scope="package")
def new_database(server: ConnectionParameters) -> NewDatabase:
    """Return a function that creates a database, empty or as a copy, and returns its connection parameters."""
    numbers = itertools.count()

    def make(like: str = "template1") -> ConnectionParameters:
        name = f"samples_{next(numbers)}"
        _execute(server, f"CREATE DATABASE {name} TEMPLATE {like}")
        return replace(server, dbname=name)

    return make


def _execute(server: ConnectionParameters, statement: str) -> None:
    with closing(server.connect()) as conn:
        conn.autocommit = True
        with conn.cursor() as cur:
            cur.execute(statement)


@pytest.fixture
def database(new_database: NewDatabase) -> ConnectionParameters:
    """Return an empty database."""
    return new_database()


@pytest.fixture
def conn(database: ConnectionParameters) -> Iterator[connection]:
    """Open a connection to the empty database."""
    with closing(database.connect()) as opened:
        yield opened


@pytest.fixture(scope="package")
def original_scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write scripts like the original Northwind's: unqualified names, smallint and bpchar keys, settings, drops."""
    folder = tmp_path_factory.mktemp("original")
    ddl = SCHEMA_SQL.read_text(encoding="utf-8").replace("varchar(5)", "bpchar")
    ddl = ddl.replace("order_id            integer", "order_id smallint").replace(
        "order_id    integer", "order_id smallint"
    )
    drops = "\n".join(f"DROP TABLE IF EXISTS {table.name} CASCADE;" for table in dataset())
    (folder / "01_ddl.sql").write_text(f"{ORIGINAL_SETTINGS}{drops}\n{ddl}", encoding="utf-8")
    inserts = [ORIGINAL_SETTINGS]
    for table in dataset():
        start = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES"
        inserts += [f"{start} ({', '.join(map(_literal, row))});" for row in table.rows]
    (folder / "02_data.sql").write_text("\n".join(inserts), encoding="utf-8")
    return folder


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


@pytest.fixture(scope="package", params=["generated", "scripts"])
def sample(request: pytest.FixtureRequest, new_database: NewDatabase, original_scripts: Path) -> str:
    """Return the name of a database with the sample, as a template."""
    database = new_database()
    load(database, original_scripts if request.param == "scripts" else None)
    return database.dbname


@pytest.fixture
def loaded(server: ConnectionParameters, sample: str, new_database: NewDatabase) -> Iterator[connection]:
    """Open a connection in autocommit mode to a new database with the sample."""
    database = new_database(sample)
    with closing(database.connect()) as opened:
        opened.autocommit = True
        yield opened
    _execute(server, f"DROP DATABASE {database.dbname}")
