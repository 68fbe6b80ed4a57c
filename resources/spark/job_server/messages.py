"""Messages between a client and the Spark job server: pickled, one request and one response per connection.

Pickle keeps reports, errors and specs as they are, secrets included. Client and server must therefore run as the same
user and with the same code: the socket is in a folder that only its user may enter, and version() is sent before the
request.
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
    """A job with its spec."""

    job: Callable[[Any, Any], Any]
    spec: Any


@dataclass(frozen=True)
class Report:
    """The response of a job that succeeded."""

    value: Any


@dataclass(frozen=True)
class Failed:
    """The response of a job that failed, with the error that it raised."""

    error: Exception


@dataclass(frozen=True)
class Retired:
    """The response of a server that shuts down and did not start the job; the client can send it to another server."""


def version(settings: str, paths: Iterable[Path]) -> str:
    """Return a digest of settings, and of the names, sizes and modification times of files.

    Of a folder, these are the Python modules below it. Missing files are skipped.
    """
    found = hashlib.sha256(settings.encode())
    for path in paths:
        for each in sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []:
            status = each.stat()
            found.update(f"{each}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return found.hexdigest()


def pickled_failure(error: Exception, job: str) -> bytes:
    """Return a pickled Failed. An error that cannot be pickled becomes a JobFailed with its class and message.

    `job` is the name of the job's function. The error gets the traceback as a note.
    """
    note = f"Raised in the Spark server:\n{''.join(traceback.format_exception(error))}"
    try:
        error.add_note(note)
        body = pickle.dumps(Failed(error))
        pickle.loads(body)  # noqa: S301 - written in the line above
    except Exception:  # noqa: BLE001 - errors of other packages raise anything when pickled
        failure = JobFailed(
            f"Cannot complete Spark job {job}: it raised {type(error).__name__}: {error}",
            "Set CDC_LAKE_DEBUG=1 for the traceback.",
        )
        failure.add_note(note)
        return pickle.dumps(Failed(failure))
    return body
