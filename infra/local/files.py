"""Writes the stack's files atomically, with the right mode from the first byte."""

from __future__ import annotations

import os
from pathlib import Path
from string import Template

TEMPLATES = Path(__file__).parent / "components"
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


def render(template: str, values: dict[str, str | int | Path]) -> str:
    """Return the text of `components/<template>` with every `$name` substituted.

    Raises KeyError if the template contains a name that is not in `values`.
    """
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(
        {name: str(value) for name, value in values.items()}
    )
