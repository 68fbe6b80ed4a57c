"""The SQL script to run after the database stack, on a PostgreSQL whose admin is not a superuser, as in RDS."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import infra.aws
from infra.aws.stacks.database import REPLICATION_USER
from infra.local.components.postgres import binaries
from infra.local.postgres_account import unprivileged_user

SQL = Path(str(infra.aws.__file__)).parent / "sql" / "replication.sql"
AS_ON_RDS = """
CREATE ROLE rds_replication;
CREATE ROLE app LOGIN;
CREATE ROLE other LOGIN;
CREATE ROLE admin LOGIN CREATEROLE;
GRANT rds_replication, app TO admin WITH ADMIN OPTION;
ALTER DATABASE postgres OWNER TO admin;
CREATE SCHEMA datalake AUTHORIZATION app;
CREATE TABLE datalake.orders (id int PRIMARY KEY);
ALTER TABLE datalake.orders OWNER TO app;
"""


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server that listens on a socket in its own folder."""

    folder: Path

    def run(
        self, *arguments: str, user: str = "postgres", password: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run psql with these arguments."""
        command = [str(binaries() / "psql"), "-h", str(self.folder), "-U", user, "-d", "postgres", "-X", "-q", "-At"]
        return subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1", *arguments],
            env=os.environ | ({"CDC_LAKE_PASSWORD": password} if password else {}),
            capture_output=True,
            text=True,
            check=False,
        )

    def script(
        self, password: str | None, user: str = "admin", schema: str = "datalake"
    ) -> subprocess.CompletedProcess[str]:
        """Run the script as the admin, or as another user."""
        return self.run("-v", f"schema={schema}", "-f", str(SQL), user=user, password=password)

    def verifier(self) -> str:
        """Return the stored verifier of the replication user's password."""
        return self.run("-c", f"SELECT rolpassword FROM pg_authid WHERE rolname = '{REPLICATION_USER}'").stdout


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    user = unprivileged_user() or getpass.getuser()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    shutil.chown(folder, user)
    data, control = folder / "data", str(binaries() / "pg_ctl")
    initdb = [str(binaries() / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync"]
    options = f"-k {folder} -c listen_addresses= -c wal_level=logical"
    try:
        subprocess.run(initdb, user=user, cwd="/", check=True, capture_output=True)
        start = [control, "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start"]
        subprocess.run(start, user=user, cwd="/", check=True, stdout=subprocess.DEVNULL)
        try:
            started = Server(folder)
            prepared = started.run("-c", AS_ON_RDS)
            assert prepared.returncode == 0, prepared.stderr
            yield started
        finally:
            subprocess.run([control, "-D", str(data), "-m", "immediate", "stop"], user=user, cwd="/", check=True)
    finally:
        shutil.rmtree(folder)


def test_the_user_may_replicate_and_create_what_the_source_asset_creates(server: Server) -> None:
    ran = server.script("it's a secret")
    assert ran.returncode == 0, ran.stderr
    roles = f"SELECT rolname FROM pg_roles WHERE pg_has_role('{REPLICATION_USER}', oid, 'USAGE') ORDER BY 1"
    assert server.run("-c", roles).stdout.split() == ["app", REPLICATION_USER, "rds_replication"]
    made = server.run(
        "-c",
        "CREATE PUBLICATION p FOR TABLE datalake.orders; CREATE TABLE datalake.cdc_heartbeat (id int);"
        "ALTER TABLE datalake.orders REPLICA IDENTITY FULL",
        user=REPLICATION_USER,
    )
    assert made.returncode == 0, made.stderr


def test_a_missing_schema_is_not_created_but_the_user_may_create_it(server: Server) -> None:
    ran = server.script("x", schema="unmade")
    assert ran.returncode == 0, ran.stderr
    there = "SELECT nspname FROM pg_namespace WHERE nspname = 'unmade'"
    assert server.run("-c", there).stdout == ""
    made = server.run("-c", "CREATE SCHEMA unmade; CREATE TABLE unmade.orders (id int)", user=REPLICATION_USER)
    try:
        assert made.returncode == 0, made.stderr
        again = server.script("y", schema="unmade")
        assert again.returncode == 0, again.stderr
    finally:
        server.run("-c", "DROP SCHEMA IF EXISTS unmade CASCADE")


def test_the_user_may_create_tables_in_an_empty_schema_of_another_owner(server: Server) -> None:
    server.run("-c", "CREATE SCHEMA emptied AUTHORIZATION admin")
    try:
        ran = server.script("x", schema="emptied")
        assert ran.returncode == 0, ran.stderr
        made = server.run("-c", "CREATE TABLE emptied.orders (id int)", user=REPLICATION_USER)
        assert made.returncode == 0, made.stderr
    finally:
        server.run("-c", "DROP SCHEMA emptied CASCADE")


def test_a_second_run_sets_the_current_password_of_the_secret(server: Server) -> None:
    before = server.script("first") and server.verifier()
    again = server.script("second")
    assert again.returncode == 0, again.stderr
    assert before.startswith("SCRAM-SHA-256$")
    assert server.verifier() != before


def test_the_password_is_not_in_the_log(server: Server) -> None:
    server.script("planted-for-the-log")
    assert "planted-for-the-log" not in (server.folder / "log").read_text()
    logged = server.run("-c", "SET log_statement = 'all'", "-c", "SELECT 'planted-beside'")
    assert logged.returncode == 0
    assert "planted-beside" in (server.folder / "log").read_text(), (
        "the log does not contain statements even with log_statement = 'all'"
    )


def test_the_script_stops_at_an_error(server: Server) -> None:
    ran = server.script("x", user="other")
    assert ran.returncode != 0
    assert "permission denied" in ran.stderr


def test_without_a_password_nothing_is_changed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_LAKE_PASSWORD", raising=False)
    server.script("before")
    before = server.verifier()
    ran = server.script(None)
    assert ran.returncode != 0
    assert "CDC_LAKE_PASSWORD is not set. Nothing was changed" in ran.stderr
    assert server.verifier() == before


def test_the_user_does_not_become_the_admin(server: Server) -> None:
    server.run("-c", "CREATE TABLE datalake.mine (id int); ALTER TABLE datalake.mine OWNER TO admin")
    try:
        ran = server.script("x")
    finally:
        server.run("-c", "DROP TABLE datalake.mine")
    assert ran.returncode != 0
    assert (
        "Cannot grant the tables of schema datalake to cdc_lake: the admin owns mine. Nothing was changed" in ran.stderr
    )
