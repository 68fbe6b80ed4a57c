"""The random secrets of one stack: made at its first start, kept in one file that only its owner reads."""

from __future__ import annotations

import secrets
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from infra.local.component import Secrets
from infra.local.errors import StackError
from infra.local.files import PRIVATE, write_atomic


class _SecretsFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    postgres_password: str
    s3_access_key: str
    s3_secret_key: str


def load_or_make(path: Path) -> Secrets:
    """The secrets in `path`; new ones are written there, mode 0600, if it does not exist.

    Raises StackError when the file is there and can't be read: the data was encrypted by nothing else,
    but PostgreSQL's password can't be guessed back.
    """
    if not path.exists():
        made = _SecretsFile(
            postgres_password=secrets.token_urlsafe(24),
            s3_access_key="cdc" + secrets.token_hex(8),
            s3_secret_key=secrets.token_urlsafe(30),
        )
        write_atomic(path, made.model_dump_json(indent=2), mode=PRIVATE)
    path.chmod(PRIVATE)
    try:
        read = _SecretsFile.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise StackError(
            f"{path} is not what cdc-lake wrote there ({error.error_count()} problems): put it back from a "
            f"copy, or run `cdc-lake down`, remove {path.parent} and start over"
        ) from None
    return Secrets(**read.model_dump())
