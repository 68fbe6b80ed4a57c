"""Restrict commands that manage the local stack to the local profile."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import ParamSpec

from resources.errors import ResourceError

P = ParamSpec("P")


def profile() -> str:
    """Return the profile that CDC_LAKE_PROFILE sets; default: local."""
    return os.environ.get("CDC_LAKE_PROFILE", "local")


def local_only(command: Callable[P, None], instead: str = "") -> Callable[P, None]:
    """Wrap a command so that it raises ResourceError in other profiles; `instead` describes the alternative."""

    @functools.wraps(command)
    def run_if_local(*arguments: P.args, **options: P.kwargs) -> None:
        if profile() != "local":
            name = command.__name__
            raise ResourceError(
                f"Cannot run `cdc-lake {name}`: it manages the stack on this machine, and CDC_LAKE_PROFILE is"
                f" {profile()!r}.",
                f"{instead} `CDC_LAKE_PROFILE=local cdc-lake {name}` runs it on the local stack.".strip(),
            )
        command(*arguments, **options)

    return run_if_local
