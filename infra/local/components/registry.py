"""Apicurio Registry, the schema registry of pipelines with Avro. It stores its schemas in an H2 file.

It accepts one token, which is created at the first start together with the public key that verifies it. The private key
is not stored, so that no other token can be created.
"""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from infra.artifacts.artifacts import jars
from infra.artifacts.java import java_home
from infra.errors import StackError
from infra.files import write_atomic
from infra.local.components.connect import secrets_file
from infra.local.jvm import COMMON, jar_version, temporary_option
from infra.local.stack.component import LOOPBACK, PRIVATE_FOLDER, Launch, StackContext
from infra.local.stack.endpoints import CCOMPAT_API, CORE_API, REGISTRY_PROPERTIES
from infra.local.templates import render

HEAP = "256m"
NAME = "registry"
_ARTIFACT = "apicurio-registry-app"
_CREDENTIALS = "credentials.json"
_DATA = "data"
_SCHEMA = b'"record"'
"""A part of each schema that a converter registers. H2 stores a schema's text as it is."""
_FIRST_START = "first-start"
"""A file that exists from before the database is created until the registry has answered for the first time."""
_SUBJECT = "cdc-lake"
_EXPIRES = 4_102_444_800
"""2100-01-01: Apicurio rejects tokens without an expiry. To invalidate a token, delete the credentials file."""
_PROTECTED = (f"{CCOMPAT_API}/subjects", f"{CORE_API}/search/artifacts", "/ui/")


class _Credentials(BaseModel):
    model_config = ConfigDict(extra="forbid")

    public_key: str
    """The RSA key that verifies the token: SubjectPublicKeyInfo in base64, which is PEM without its first and last
    line."""
    token: str


def authorization(home: Path) -> str | None:
    """Return the Authorization header for requests to the registry, or None if the registry was never started.

    Raises StackError if the file with the token is damaged.
    """
    found = _read(_credentials_file(home))
    return f"Bearer {found.token}" if found else None


class RegistryComponent:
    """One server. It rejects requests without its token (status 401), except for /health."""

    name = NAME
    port_names: tuple[str, ...] = (NAME,)
    needs: tuple[str, ...] = ()

    def version(self) -> str:
        """Return the registry's version."""
        return jar_version(jars("apicurio"), _ARTIFACT).removesuffix("-runner")

    def prepare(self, context: StackContext) -> None:
        """Write the configuration and the Authorization header for converters; create the token if it is missing."""
        folder = context.folder(self.name)
        context.temporary(self.name)
        file = _credentials_file(context.home)
        credentials = _read(file)
        if credentials is None:
            credentials = _new_credentials()
            write_atomic(file, credentials.model_dump_json())
        values: dict[str, str | int | Path] = {
            "host": LOOPBACK,
            "port": context.ports[self.name],
            "public_key": credentials.public_key,
        }
        configuration = folder / "config"
        configuration.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        write_atomic(configuration / "application.properties", render("registry/application.properties", values))
        context.folder("connect")
        secrets = secrets_file(context.home).with_name(REGISTRY_PROPERTIES)
        secrets.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        # In Java's properties format no character of a token needs an escape.
        write_atomic(secrets, f"registry.authorization=Bearer {credentials.token}\n")
        _delete_incomplete_database(folder)

    def launch(self, context: StackContext) -> Launch:
        """Return the server's process. It reads config/application.properties in its working folder."""
        [program] = jars("apicurio").glob(f"{_ARTIFACT}-*-runner.jar")
        return Launch(
            argv=(
                str(java_home(17) / "bin" / "java"),
                *COMMON,
                f"-Xmx{HEAP}",
                temporary_option(context.folder(self.name)),
                *("-jar", str(program)),
            )
        )

    def probe(self, context: StackContext) -> None:
        """Check that the registry accepts its token, and rejects requests without a token."""
        import httpx  # noqa: PLC0415 - `status` loads this module and does not need httpx

        url = f"http://{LOOPBACK}:{context.ports[self.name]}"
        header = {"Authorization": authorization(context.home) or ""}
        httpx.get(url + _PROTECTED[0], headers=header, timeout=10, trust_env=False).raise_for_status()
        for path in _PROTECTED:
            refused = httpx.get(url + path, timeout=10, trust_env=False)
            if refused.status_code != httpx.codes.UNAUTHORIZED:
                raise StackError(
                    f"the registry returned {refused.status_code} instead of 401 for {path} without a token"
                )

    def after_ready(self, context: StackContext) -> None:
        """Record that the database is complete. Converters register schemas."""
        (context.folder(self.name) / _FIRST_START).unlink(missing_ok=True)


def _delete_incomplete_database(folder: Path) -> None:
    """Delete a database whose creation was interrupted, by a kill or a lost port, unless it contains a schema.

    Apicurio creates the tables one by one, and treats a database with only some of them as complete. Then it either
    ends or returns status 500 for each request. If `cdc-lake up` was killed before after_ready(), the registry may have
    been used nevertheless.
    """
    first_start, data = folder / _FIRST_START, folder / _DATA
    if first_start.exists() and data.exists() and not any(_SCHEMA in path.read_bytes() for path in data.iterdir()):
        shutil.rmtree(data)
    if not data.exists():
        first_start.touch()


def _new_credentials() -> _Credentials:
    import jwt  # noqa: PLC0415 - `status` loads this module and needs neither of them
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    # Apicurio requires the time of issue too.
    token = jwt.encode({"sub": _SUBJECT, "iat": 0, "exp": _EXPIRES}, key, algorithm="RS256")
    return _Credentials(public_key=base64.b64encode(public).decode(), token=token)


def _credentials_file(home: Path) -> Path:
    return home / NAME / _CREDENTIALS


def _read(file: Path) -> _Credentials | None:
    try:
        return _Credentials.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValidationError:
        raise StackError(
            f"Cannot read {file}: it was changed and is not valid. Delete it, then run `cdc-lake down` and "
            "`cdc-lake up`, which creates a new token for the registry."
        ) from None
