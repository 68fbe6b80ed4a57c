"""The Kafka Connect worker in distributed mode, with Debezium's PostgreSQL connector as its plugin."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from infra.local.artifacts.artifacts import jars
from infra.local.artifacts.class_path import ClassPath
from infra.local.artifacts.java import java_home
from infra.local.engine_tools import run_tool
from infra.local.errors import StackError
from infra.local.files import render, write_atomic
from infra.local.jvm import jar_version, java_command, temporary_option
from infra.local.stack.component import LOOPBACK, Launch, StackContext
from infra.local.stack.endpoints import CONNECT_USER

HEAP = "768m"
SECRETS_FOLDER = "secrets"
SECRETS_FILE = "postgres.properties"
MANIFESTS = "service_load"
_LOGINS = "logins.properties"
_JAAS = "jaas.conf"
_LATEST = "kafka"
_POLICIES = {_LATEST: "Allowlist"}
"""The client settings that connectors may override: those that worker.properties lists. Workers before Kafka 4.2, which
tests run, have no such policy, and ours have to override the size of a request."""


def secrets_file(home: Path) -> Path:
    """The properties file that connectors read `postgres.password` from, by the worker's config provider.

    That is the password of Debezium's role: what the worker can look up, whoever configures connectors can read.
    """
    return home / "connect" / SECRETS_FOLDER / SECRETS_FILE


class ConnectComponent:
    """One worker; its connectors are the pipelines' business.

    `plugins` is its plugin.path; Debezium's if None. `module` has the worker's own jars. `discovery` is its
    plugin.discovery: `service_load` reads manifests, which are made where the plugins lie.
    """

    name = "connect"
    port_names: tuple[str, ...] = ("connect",)
    needs: tuple[str, ...] = ("kafka", "postgres")
    """PostgreSQL too: a connector that finds no database at the worker's start fails and stays so."""

    def __init__(self, plugins: Path | None = None, module: str = _LATEST, discovery: str = MANIFESTS) -> None:
        self._given = plugins
        self._module = module
        self._discovery = discovery

    @property
    def _plugins(self) -> Path:
        return self._given or jars("debezium")

    def version(self) -> str:
        """The worker's version and its plugin's."""
        debezium = jar_version(self._plugins, "debezium-connector-postgres")
        return f"{jar_version(jars(self._module), 'connect-runtime')}, Debezium {debezium}"

    def prepare(self, context: StackContext) -> None:
        """Write configuration and secrets; make the plugin's manifests if that was never done."""
        folder = context.folder(self.name)
        context.temporary(self.name)
        secrets = secrets_file(context.home)
        secrets.parent.mkdir(mode=0o700, exist_ok=True)
        # Java's properties format: token_urlsafe has no character that it would read as anything but itself.
        write_atomic(secrets, f"postgres.password={context.secrets.debezium_password}\n")
        logins = folder / _LOGINS
        write_atomic(logins, f"{CONNECT_USER}={context.secrets.connect_password}\n")
        write_atomic(folder / _JAAS, render("connect/jaas.conf", {"logins": _quoted(logins)}))
        values: dict[str, str | int | Path] = {
            "host": LOOPBACK,
            "port": context.ports["connect"],
            "bootstrap": f"{LOOPBACK}:{context.ports['kafka']}",
            "plugins": self._plugins,
            "discovery": self._discovery,
            "secrets": secrets.parent,
            "policy": _POLICIES.get(self._module, "All"),
        }
        write_atomic(folder / "worker.properties", render("connect/worker.properties", values))
        write_atomic(folder / "log4j2.properties", render("connect/log4j2.properties", {}))
        if self._discovery == MANIFESTS:
            self._sync_manifests(context)

    def _sync_manifests(self, context: StackContext) -> None:
        plugins = self._plugins
        done = plugins.with_name(f"{plugins.name}.synced")
        with FileLock(plugins.with_name(f"{plugins.name}.lock")):
            if not done.exists():
                arguments = ("sync-manifests", "--plugin-path", str(plugins))
                main = "org.apache.kafka.tools.ConnectPluginPath"
                options = (temporary_option(context.folder(self.name)),)
                command = java_command(self.class_path(), main, arguments, HEAP, options)
                run_tool(Launch(command), self.name, context.home)
                done.touch()

    def launch(self, context: StackContext) -> Launch:
        """The worker's process."""
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
        """The worker's jars; the plugin has a loader of its own, whose classes Java does not keep."""
        return ClassPath(self.name, java_home(17), (jars(self._module),))

    def probe(self, context: StackContext) -> None:
        """The worker is healthy: it has joined its group and read its configuration. It refuses who has no password."""
        import httpx  # noqa: PLC0415 - `status` loads this module and needs none of it

        url = f"http://{LOOPBACK}:{context.ports['connect']}/health"
        login = (CONNECT_USER, context.secrets.connect_password)
        httpx.get(url, auth=login, timeout=10, trust_env=False).raise_for_status()
        refused = httpx.get(url, timeout=10, trust_env=False)
        if refused.status_code != httpx.codes.UNAUTHORIZED:
            raise StackError(f"connect answered {refused.status_code} to a request without a password, not 401")

    def after_ready(self, context: StackContext) -> None:
        """Nothing: connectors belong to the pipelines."""

    def exercise(self, context: StackContext) -> None:
        """Nothing: its start does what it does later, but for what the plugins do."""


def _quoted(path: Path) -> str:
    """A path within the quotes of a JAAS file."""
    return str(path).replace("\\", "\\\\").replace('"', '\\"')
