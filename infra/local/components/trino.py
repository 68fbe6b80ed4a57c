"""Trino, which runs Athena's SQL: one node on the loopback interface that reads the local Glue and S3."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from pathlib import Path

from infra.artifacts.artifacts import jars
from infra.artifacts.class_path import ClassPath
from infra.artifacts.java import java_home
from infra.errors import StackError
from infra.files import PRIVATE, write_atomic
from infra.local.jvm import temporary_option
from infra.local.stack.component import LOOPBACK, Launch, Secrets, StackContext
from infra.local.stack.endpoints import REGION

_CONFIG = Path(__file__).with_name("trino")
USER = "athena"
"""The only user of the server."""
FORWARDED = {"X-Forwarded-Proto": "https"}
"""The header of a proxy that terminates TLS. Trino accepts tokens only over HTTPS or behind such a proxy; here client
and server are both on the loopback interface."""
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
    # Trino takes the longest to start, so it starts with the first components.
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ("aws", "s3")
    """It calls Glue and S3 only when the first query runs."""

    def version(self) -> str:
        """Return the server's version, from the name of its main jar."""
        found = next((jars("trino") / "lib").glob("io.trino_trino-main-*.jar"), None)
        match = re.search(r"-(\d+)\.jar$", found.name) if found else None
        if match is None:
            raise StackError(
                f"Cannot run Trino: {jars('trino')} contains no Trino server. Remove that folder and run `cdc-lake "
                "setup`."
            )
        return match[1]

    def prepare(self, context: StackContext) -> None:
        """Create the folder for temporary files, and the file with the key that verifies tokens.

        Trino accepts that key only as a file. Other configuration files are used in place, and Trino stores no data.
        """
        context.temporary(self.name)
        key = base64.b64encode(_derived(context.secrets, "trino-token")).decode()
        write_atomic(_key_file(context), key, mode=PRIVATE)

    def launch(self, context: StackContext) -> Launch:
        """Return the server's command line and its environment, which contains the values of this stack."""
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
        """Return the server's jars, for the JVM and its class archive.

        Plugins are not included: a CDS archive cannot contain classes of their class loaders.
        """
        return ClassPath(self.name, java_home(25), (jars("trino") / "lib",))

    def probe(self, context: StackContext) -> None:
        """Check that the server accepts queries with this stack's token.

        Another stack's server that has taken the port in the meantime rejects the token.
        """
        import httpx  # noqa: PLC0415 - `status` loads this module but does not need httpx

        headers = {"Authorization": f"Bearer {token(context.secrets)}", **FORWARDED}
        with httpx.Client(base_url=_url(context), headers=headers, timeout=2, trust_env=False) as client:
            if client.get("/v1/info").raise_for_status().json()["starting"]:
                raise StackError(f"Trino at {_url(context)} is starting")
            client.get("/v1/query").raise_for_status()

    def after_ready(self, context: StackContext) -> None:
        """Do nothing: tables are in Glue."""


def token(secrets: Secrets) -> str:
    """Return the token of the server's only user.

    It does not expire; it becomes invalid when the stack's S3 keys change.
    """
    import jwt  # noqa: PLC0415 - `status` loads this module but does not need jwt

    return jwt.encode({"sub": USER}, _derived(secrets, "trino-token"), algorithm="HS256")


def _derived(secrets: Secrets, purpose: str) -> bytes:
    """Derive a key for this purpose from the stack's secret S3 key."""
    return hmac.digest(secrets.s3_secret_key.encode(), purpose.encode(), hashlib.sha256)


def _key_file(context: StackContext) -> Path:
    return context.folder("trino") / "token.key"


def _url(context: StackContext) -> str:
    return f"http://{LOOPBACK}:{context.ports['trino']}"
