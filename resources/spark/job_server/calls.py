"""The messages between a process that needs a job and the server: pickled, one request and one answer a connection.

Pickle keeps reports, errors and specs as they are, secrets included. Both sides therefore must be the same user's, with
the same code: the socket is in a folder that only its user may enter, and a request names the version of its code.
"""

from __future__ import annotations

import hashlib
import pickle
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.errors import JobFailed


@dataclass(frozen=True)
class Request:
    """A job with its spec. `version` is version() of the sender's settings."""

    version: str
    job: Callable[[Any, Any], Any]
    spec: Any


@dataclass(frozen=True)
class Report:
    """The answer of a job that succeeded."""

    value: Any


@dataclass(frozen=True)
class Failed:
    """The answer of a job that failed, with the error that it raised."""

    error: Exception


@dataclass(frozen=True)
class Retired:
    """The answer of a server that runs no more jobs. It has not started this one, which another server can run."""


def version(settings: str, folders: Iterable[Path]) -> str:
    """Return a digest of settings and of the names, sizes and times of all Python modules below the folders."""
    found = hashlib.sha256(settings.encode())
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            status = path.stat()
            found.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return found.hexdigest()


def pickled_failure(error: Exception) -> bytes:
    """Return a pickled Failed. An error that cannot be pickled becomes a JobFailed with its class and message."""
    frames = "".join(traceback.format_exception(error))
    try:
        error.add_note(f"Raised in the Spark server:\n{frames}")
        body = pickle.dumps(Failed(error))
        pickle.loads(body)  # noqa: S301 - written in the line above
    except Exception:  # noqa: BLE001 - errors of other packages raise anything when pickled
        return pickle.dumps(
            Failed(JobFailed(f"Cannot complete a Spark job: it raised {type(error).__name__}: {error}", frames))
        )
    return body
