"""Chooses the operating system user that PostgreSQL runs as, because PostgreSQL does not run as root."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from pathlib import Path

from infra.errors import StackError

USER_VARIABLE = "CDC_LAKE_PG_USER"
USUAL = ("postgres", "nobody")


def unprivileged_user() -> str | None:
    """Return the user to run PostgreSQL as, or None if the caller is not root: PostgreSQL then runs as the caller.

    The user is CDC_LAKE_PG_USER, else `postgres`, else `nobody`. Raises StackError if there is no such user.
    """
    if os.geteuid() != 0:
        return None
    named = os.environ.get(USER_VARIABLE)
    for name in (named,) if named else USUAL:
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        if account.pw_uid != 0:
            return name
    raise StackError(
        f"Cannot run PostgreSQL as root: there is no unprivileged user {named or ' or '.join(USUAL)}. "
        f"Set {USER_VARIABLE} to an existing one, or run cdc-lake as another user."
    )


def require_access(user: str, paths: list[Path]) -> None:
    """Check that `user` can reach the paths. Raises a StackError that names the closed folder if not."""
    account = pwd.getpwnam(user)
    for path in paths:
        reached = subprocess.run(
            ["/bin/sh", "-c", 'test -x "$0"', str(path)],
            cwd="/",
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            check=False,
        )
        if reached.returncode != 0:
            closed = first_closed(path, account.pw_uid, account.pw_gid) or path
            raise StackError(
                f"Cannot run PostgreSQL as user {user}: this user cannot enter {closed}, a folder on the way to "
                f"{path}. PostgreSQL does not run as root. Run `chmod o+x {closed}`, set {USER_VARIABLE} to a user "
                "with access, or move the checkout and the state folder (CDC_LAKE_HOME) to a folder that every user "
                "can enter."
            )


def first_closed(path: Path, uid: int, gid: int) -> Path | None:
    """Return the topmost part of `path` whose mode denies this user access, or None if there is no such part."""
    for part in (*reversed(path.parents), path):
        found = part.stat()
        if found.st_uid == uid:
            needed = stat.S_IXUSR
        elif found.st_gid == gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not found.st_mode & needed:
            return part
    return None
