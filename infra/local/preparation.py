"""The steps between a fresh checkout and a running stack: doctor, setup, up."""

from __future__ import annotations

import time

from rich.console import Console

from infra.local.artifacts import spark_classes, stack_classes
from infra.local.artifacts.artifacts import JAVAS, MODULES, ensure, ensure_java
from infra.local.components import all_components
from infra.local.doctor import examine
from infra.local.errors import StackError
from infra.local.progress_display import ConsoleSetup, ConsoleWatch
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import find_home


def prepare(console: Console) -> dict[str, float]:
    """Check the machine, fetch what is missing, and start the stack; return the seconds of `setup` and `up`.

    Raises StackError that names everything that is missing, before anything is started.
    """
    home = find_home()
    faults = [check for check in examine(home, all_components()) if check.level == "missing"]
    if faults:
        raise StackError("; ".join(f"{check.name}: {check.found}: {check.todo}" for check in faults))
    started = time.monotonic()
    fetch(console)
    fetched = time.monotonic()
    with ConsoleWatch(console) as watch:
        Stack(home).up(None, watch)
    return {"setup": round(fetched - started, 2), "up": round(time.monotonic() - fetched, 2)}


def fetch(console: Console) -> None:
    """Fetch everything that the stack and the jobs run into the cache folder; complete parts are kept.

    Raises StackError that names what cannot be fetched. A class archive that cannot be created is only a warning.
    """
    with ConsoleSetup(console) as progress:
        ensure_java(JAVAS, progress)
        ensure(MODULES, progress)
        warnings = [classes.ensure(progress) for classes in (spark_classes, stack_classes)]
    for warning in filter(None, warnings):
        console.print(warning, highlight=False, soft_wrap=True)
