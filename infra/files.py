"""Writes files atomically, with their final mode from the start, so that others can never read a private file."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o600


def write_atomic(path: Path, text: str, mode: int = PRIVATE) -> None:
    """Write `text` to `path`, by default readable by its owner only. Readers see the old file or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)  # independent of the umask
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
