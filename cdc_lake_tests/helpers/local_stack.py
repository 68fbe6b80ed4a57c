"""Functions that start a stack for tests in its own state folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from infra.local.stack.component import Component
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome
from resources.postgres.resource import Postgres


@contextmanager
def running_stack(
    home: Path, only: Collection[str] | None = None, components: Sequence[Component] | None = None
) -> Iterator[Stack]:
    """Start the stack in `home` (`only` these components and their dependencies); stop it at the end."""
    stack = Stack(StackHome(home), components)
    try:
        stack.up(only)
        yield stack
    finally:
        stack.down()


@contextmanager
def scratch_home() -> Iterator[Path]:
    """Yield a new state folder that PostgreSQL's user can enter, unlike pytest's own folders."""
    folder = Path(tempfile.mkdtemp(prefix="cdc-lake-test-"))
    folder.chmod(0o711)
    try:
        yield folder / "home"
    finally:
        shutil.rmtree(folder)


def source_postgres(at: Endpoints) -> Postgres:
    """Return the Postgres resource of a running stack."""
    return Postgres(
        host=at.postgres_host,
        port=at.postgres_port,
        user=at.postgres_user,
        password=at.postgres_password.get_secret_value(),
        database=at.postgres_database,
        capture_role=at.capture_role,
    )
