"""A running stack for tests, in a state folder of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from infra.local.stack.component import Component
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome


@contextmanager
def running_stack(
    home: Path, only: Collection[str] | None = None, components: Sequence[Component] | None = None
) -> Iterator[Stack]:
    """The stack in `home`, up (`only` these and what they need), and down at the end, whatever happens."""
    stack = Stack(StackHome(home), components)
    try:
        stack.up(only)
        yield stack
    finally:
        stack.down()


@contextmanager
def scratch_home() -> Iterator[Path]:
    """A new state folder that PostgreSQL's user may pass through (pytest's own folders are closed to it)."""
    folder = Path(tempfile.mkdtemp(prefix="cdc-lake-test-"))
    folder.chmod(0o711)
    try:
        yield folder / "home"
    finally:
        shutil.rmtree(folder)
