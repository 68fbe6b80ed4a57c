"""The Kafka Connect worker in distributed mode, with Debezium's PostgreSQL connector and the Avro converter."""

from __future__ import annotations

import tempfile
from pathlib import Path

from filelock import FileLock

from infra.artifacts.artifacts import jars
from infra.artifacts.class_path import ClassPath
from infra.artifacts.java import java_home
from infra.errors import StackError
from infra.files import write_atomic
from infra.local.engine_tools import run_tool
from infra.local.jvm import jar_version, java_command, temporary_option
from infra.local.stack.component import LOOPBACK, Launch, StackContext
from infra.local.stack.endpoints import CONNECT_USER
from infra.local.templates import render

HEAP = "768m"
SECRETS_FOLDER = "secrets"
SECRETS_FILE = "postgres.properties"
SERVICE_LOAD = "service_load"
_LOGINS = "logins.properties"
_JAAS = "jaas.conf"
_LATEST = "kafka"
_POLICIES = {_LATEST: "Allowlist"}
"""The policy for client settings in connector configurations; `Allowlist` permits those that worker.properties lists.
Some tests run a Kafka before 4.2, which does not have `Allowlist`. There it is `All`, because our connectors override
the request size."""


def secrets_file(home: Path) -> Path:
    """Return the properties file from which connectors read `postgres.password`, through the worker's config provider.

    It contains the password of Debezium's role. A client that may configure connectors can read all files in its
    folder, so the folder has only secrets of connectors.
    """
    return home / "connect" / SECRETS_FOLDER / SECRETS_FILE


class ConnectComponent:
    """One worker; the pipelines create its connectors.

    `plugins` is the worker's plugin.path; None: the folders of Debezium and of the Avro converter. `module` is the
    module of infra/artifacts with the worker's jars. `discovery` is the worker's plugin.discovery; with `service_load`,
    the worker reads manifests, which `prepare` writes into the plugin folders.
    """

    name = "connect"
    port_names: tuple[str, ...] = ("connect",)
    needs: tuple[str, ...] = ("kafka", "postgres")
    """PostgreSQL is included because a connector that cannot connect to its database at the worker's start fails and is
    not restarted."""
    after: tuple[str, ...] = ("registry",)
    """The registry, for the same reason: a connector's task fails if the registry does not answer its converter."""

    def __init__(self, plugins: Path | None = None, module: str = _LATEST, discovery: str = SERVICE_LOAD) -> None:
        self._given = plugins
        self._module = module
        self._discovery = discovery

    @property
    def _plugins(self) -> tuple[Path, ...]:
        return (self._given,) if self._given else (jars("debezium"), jars("avro-converter"))

    def version(self) -> str:
        """Return the versions of the worker and of Debezium."""
        debezium = jar_version(self._plugins[0], "debezium-connector-postgres")
        return f"{jar_version(jars(self._module), 'connect-runtime')}, Debezium {debezium}"

    def prepare(self, context: StackContext) -> None:
        """Write configuration and secrets; create the plugins' manifests if they are missing."""
        folder = context.folder(self.name)
        context.temporary(self.name)
        secrets = secrets_file(context.home)
        secrets.parent.mkdir(mode=0o700, exist_ok=True)
        # In Java's properties format no character of token_urlsafe needs an escape.
        write_atomic(secrets, f"postgres.password={context.secrets.debezium_password}\n")
        logins = folder / _LOGINS
        write_atomic(logins, f"{CONNECT_USER}={context.secrets.connect_password}\n")
        write_atomic(folder / _JAAS, render("connect/jaas.conf", {"logins": _quoted(logins)}))
        values: dict[str, str | int | Path] = {
            "host": LOOPBACK,
            "port": context.ports["connect"],
            "bootstrap": f"{LOOPBACK}:{context.ports['kafka']}",
            "plugins": ",".join(map(str, self._plugins)),
            "discovery": self._discovery,
            "secrets": secrets.parent,
            "policy": _POLICIES.get(self._module, "All"),
        }
        write_atomic(folder / "worker.properties", render("connect/worker.properties", values))
        write_atomic(folder / "log4j2.properties", render("connect/log4j2.properties", {}))
        if self._discovery == SERVICE_LOAD:
            for plugins in self._plugins:
                self._sync_manifests(plugins, context)

    def _sync_manifests(self, plugins: Path, context: StackContext) -> None:
        done = plugins.with_name(f"{plugins.name}.synced")
        with FileLock(plugins.with_name(f"{plugins.name}.lock")):
            if not done.exists():
                main = "org.apache.kafka.tools.ConnectPluginPath"
                # Through a link, since Kafka 4.3's tool cannot write a jar whose path has a blank.
                with tempfile.TemporaryDirectory(prefix="cdc-lake-connect-") as temporary:
                    link = Path(temporary) / "plugins"
                    link.symlink_to(plugins)
                    arguments = ("sync-manifests", "--plugin-path", str(link))
                    options = (f"-Djava.io.tmpdir={temporary}",)
                    command = java_command(self.class_path(), main, arguments, HEAP, options, tool=True)
                    run_tool(Launch(command), self.name, context.home)
                done.touch()

    def launch(self, context: StackContext) -> Launch:
        """Return the worker's process."""
        folder = context.folder(self.name)
        options = (
            f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
            f"-Djava.security.auth.login.config={folder / _JAAS}",
            temporary_option(folder),
        )
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        arguments = (str(folder / "worker.properties"),)
        return Launch(java_command(self.class_path(), main, arguments, HEAP, options))

    def class_path(self) -> ClassPath:
        """Return the worker's jars, without those of plugins, whose class loaders a CDS archive does not support."""
        return ClassPath(self.name, java_home(25), (jars(self._module),))

    def probe(self, context: StackContext) -> None:
        """Check that the worker has joined its group, has read its configuration, and rejects requests without a
        password."""
        import httpx  # noqa: PLC0415 - `status` loads this module and does not need httpx

        url = f"http://{LOOPBACK}:{context.ports['connect']}/health"
        login = (CONNECT_USER, context.secrets.connect_password)
        httpx.get(url, auth=login, timeout=10, trust_env=False).raise_for_status()
        refused = httpx.get(url, timeout=10, trust_env=False)
        if refused.status_code != httpx.codes.UNAUTHORIZED:
            raise StackError(
                f"Kafka Connect returned {refused.status_code} instead of 401 for a request without a password"
            )

    def after_ready(self, context: StackContext) -> None:
        """Do nothing: the pipelines create connectors."""


def _quoted(path: Path) -> str:
    """Escape a path for a quoted value of a JAAS file."""
    return str(path).replace("\\", "\\\\").replace('"', '\\"')
