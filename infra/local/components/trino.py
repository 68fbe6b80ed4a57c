"""Trino, which runs Athena's SQL: one node on the loopback interface that reads the local Glue and S3."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from pathlib import Path

from infra.local.artifacts.artifacts import jars
from infra.local.artifacts.class_path import ClassPath
from infra.local.artifacts.java import java_home
from infra.local.errors import StackError
from infra.local.files import PRIVATE, write_atomic
from infra.local.jvm import temporary_option
from infra.local.stack.component import LOOPBACK, Launch, Secrets, StackContext
from infra.local.stack.endpoints import REGION

_CONFIG = Path(__file__).with_name("trino")
USER = "athena"
"""The only user of the server."""
_JVM = (
    "-Xmx1g",
    # One user on few cores: this collector and compiler start sooner and need less memory.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dfile.encoding=UTF-8",
    # The options of Trino's own jvm.config for Java 24 and newer, without the incubating vector module: PyPI's Java 25
    # does not have it, and Trino does not require it.
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)


class TrinoComponent:
    """The Trino server."""

    name = "trino"
    port_names: tuple[str, ...] = ("trino",)
    # It calls Glue and S3 at its first query, not at its start, and its start takes the longest of all components.
    needs: tuple[str, ...] = ()

    def version(self) -> str:
        """Return the server's version, from the name of its main jar."""
        found = next((jars("trino") / "lib").glob("io.trino_trino-main-*.jar"), None)
        match = re.search(r"-(\d+)\.jar$", found.name) if found else None
        if match is None:
            raise StackError(f"{jars('trino')} has no Trino server: remove that folder and run `cdc-lake setup`")
        return match[1]

    def prepare(self, context: StackContext) -> None:
        """Create the folder for temporary files and the key file for tokens, which Trino reads from a file only.

        The rest of the configuration is used in place, and Trino keeps no data.
        """
        context.temporary(self.name)
        key = base64.b64encode(_derived(context.secrets, "trino-token")).decode()
        write_atomic(_key_file(context), key, mode=PRIVATE)

    def launch(self, context: StackContext) -> Launch:
        """Return the server's process; the values of this stack are in its environment."""
        home, path = jars("trino"), self.class_path()
        environment = {
            "TRINO_HTTP_PORT": str(context.ports["trino"]),
            "TRINO_URL": _url(context),
            "TRINO_TOKEN_KEY_FILE": str(_key_file(context)),
            "TRINO_SHARED_SECRET": _derived(context.secrets, "trino-internal").hex(),
            "TRINO_PLUGIN_DIR": str(home / "plugin"),
            "TRINO_CATALOG_DIR": str(_CONFIG / "catalog"),
            "TRINO_LOG_LEVELS": str(_CONFIG / "log.properties"),
            "AWS_REGION": REGION,
            "GLUE_ENDPOINT": f"http://{LOOPBACK}:{context.ports['aws']}",
            "S3_ENDPOINT": f"http://{LOOPBACK}:{context.ports['s3']}",
            "S3_ACCESS_KEY": context.secrets.s3_access_key,
            "S3_SECRET_KEY": context.secrets.s3_secret_key,
        }
        return Launch(
            argv=(
                str(path.java / "bin" / "java"),
                *path.options(),
                *_JVM,
                temporary_option(context.folder(self.name)),
                f"-Dconfig={_CONFIG / 'config.properties'}",
                "-cp",
                f"{path.folders[0]}/*",
                "io.trino.server.TrinoServer",
            ),
            env=environment,
        )

    def class_path(self) -> ClassPath:
        """Return the server's jars. Its plugins have their own class loaders, whose classes Java does not archive."""
        return ClassPath(self.name, java_home(25), (jars("trino") / "lib",))

    def probe(self, context: StackContext) -> None:
        """Return when the server accepts queries."""
        import httpx  # noqa: PLC0415 - `status` loads this module and needs none of it

        answer = httpx.get(f"{_url(context)}/v1/info", timeout=2, trust_env=False).raise_for_status()
        if answer.json()["starting"]:
            raise StackError(f"Trino at {_url(context)} is starting")

    def after_ready(self, context: StackContext) -> None:
        """Do nothing: tables are in Glue."""

    def exercise(self, context: StackContext) -> None:
        """Run a query that is planned, distributed, aggregated and sorted."""
        from infra.local.aws_api.athena.trino_engine import Progress, Trino  # noqa: PLC0415 - as above

        sql = "SELECT state, count(*), max(node_version) FROM system.runtime.nodes GROUP BY 1 ORDER BY 2"
        answer = Trino(_url(context), token(context.secrets)).run(
            sql, catalog="system", schema=None, progress=Progress(), stopped=lambda: False
        )
        list(answer.rows)


def token(secrets: Secrets) -> str:
    """Return the token of the server's only user; it is valid as long as the stack's keys."""
    import jwt  # noqa: PLC0415 - `status` loads this module and needs none of it

    return jwt.encode({"sub": USER}, _derived(secrets, "trino-token"), algorithm="HS256")


def _derived(secrets: Secrets, purpose: str) -> bytes:
    """Derive a key for this purpose from the stack's secret S3 key."""
    return hmac.digest(secrets.s3_secret_key.encode(), purpose.encode(), hashlib.sha256)


def _key_file(context: StackContext) -> Path:
    return context.folder("trino") / "token.key"


def _url(context: StackContext) -> str:
    return f"http://{LOOPBACK}:{context.ports['trino']}"
