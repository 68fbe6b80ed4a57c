"""Commands that are about the embedded stack, which only the local profile uses."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import ParamSpec

from resources.errors import ResourceError

P = ParamSpec("P")


def profile() -> str:
    """The profile that the environment names."""
    return os.environ.get("CDC_LAKE_PROFILE", "local")


def local_only(command: Callable[P, None], instead: str = "") -> Callable[P, None]:
    """The command; in another profile it ends at once, and says what to run `instead`, where there is something."""

    @functools.wraps(command)
    def refused_elsewhere(*arguments: P.args, **options: P.kwargs) -> None:
        if profile() != "local":
            name = command.__name__
            raise ResourceError(
                f"`cdc-lake {name}` is for the local profile: it is about the stack on this machine, and"
                f" CDC_LAKE_PROFILE is {profile()!r}.",
                f"{instead} `CDC_LAKE_PROFILE=local cdc-lake {name}` runs it all the same.".strip(),
            )
        command(*arguments, **options)

    return refused_elsewhere
