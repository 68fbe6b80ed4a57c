"""Writing the stack's files: whole or not at all, with the mode they need from the first byte."""

from __future__ import annotations

import os
from pathlib import Path
from string import Template

TEMPLATES = Path(__file__).parent / "components"
PRIVATE = 0o600


def write_atomic(path: Path, text: str, mode: int = PRIVATE) -> None:
    """Put `text` at `path`, for its owner to read: a reader sees the old file or the new one, never half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)  # whatever the umask is
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def render(template: str, values: dict[str, str | int | Path]) -> str:
    """The text of `components/<template>` with every `$name` filled in.

    Raises KeyError when the template names a value that is not given.
    """
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(
        {name: str(value) for name, value in values.items()}
    )
