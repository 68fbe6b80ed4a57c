"""The random secrets of one stack: created at its first start, kept in one file that only its owner can read."""

from __future__ import annotations

import secrets
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from infra.errors import StackDown, StackError
from infra.files import PRIVATE, write_atomic
from infra.local.stack.component import Secrets


def _password() -> str:
    return secrets.token_urlsafe(24)


class _SecretsFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    postgres_password: str
    s3_access_key: str
    s3_secret_key: str
    # Files of earlier versions lack these.
    debezium_password: str = Field(default_factory=_password)
    connect_password: str = Field(default_factory=_password)


def load_or_make(path: Path) -> Secrets:
    """Return the secrets in `path`; create and write what is missing (mode 0600). The caller holds the home's lock.

    Raises StackError if the file exists but is not valid. It is not replaced, because PostgreSQL's password cannot be
    recovered. The data itself is not encrypted.
    """
    if not path.exists():
        created = _SecretsFile(
            postgres_password=_password(),
            s3_access_key="cdc" + secrets.token_hex(8),
            s3_secret_key=secrets.token_urlsafe(30),
        )
        _write(path, created)
    path.chmod(PRIVATE)
    read = _read(path)
    if read.model_fields_set != _SecretsFile.model_fields.keys():
        _write(path, read)
    return Secrets(**read.model_dump())


def load(path: Path) -> Secrets:
    """Return the secrets in `path`.

    Raises StackError if the file is not valid, StackDown if an earlier version wrote it and it lacks secrets.
    """
    read = _read(path)
    if missing := sorted(_SecretsFile.model_fields.keys() - read.model_fields_set):
        raise StackDown(
            f"Cannot use the stack in {path.parent}: an earlier version of cdc-lake started it, and {path.name} lacks "
            f"{', '.join(missing)}. Run `cdc-lake down`, then `cdc-lake up`."
        )
    return Secrets(**read.model_dump())


def _write(path: Path, content: _SecretsFile) -> None:
    write_atomic(path, content.model_dump_json(indent=2))


def _read(path: Path) -> _SecretsFile:
    try:
        return _SecretsFile.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise StackError(
            f"Cannot read {path}: it is not valid (errors: {error.error_count()}). Restore it from a copy. "
            f"Without a copy, run `cdc-lake down` and delete {path.parent}, which has all data of the stack; then run "
            "`cdc-lake up`."
        ) from None
