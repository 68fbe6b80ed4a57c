"""Runs the steps from a fresh checkout to a running stack: doctor, setup, up."""

from __future__ import annotations

import time

from rich.console import Console

from infra.artifacts.artifacts import JAVAS, MODULES, REGISTRY_MODULES, ensure, ensure_java
from infra.errors import StackError
from infra.local.components import all_components, needed_components
from infra.local.doctor import examine
from infra.local.progress_display import ConsoleProgress, ConsoleSetup
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import find_home


def prepare(console: Console, *, registry: bool = False) -> dict[str, float]:
    """Check the machine, fetch what is missing, and start the stack; return the seconds of `setup` and `up`.

    `registry`: with the schema registry, which pipelines with Avro need.

    Raises a StackError that names all missing requirements, before anything is fetched or started.
    """
    home = find_home()
    faults = [check for check in examine(home, all_components()) if check.level == "missing"]
    if faults:
        found = "; ".join(f"{check.name}: {check.found} ({check.todo})" for check in faults)
        raise StackError(f"Cannot start the stack: requirements are missing: {found}.")
    started = time.monotonic()
    fetch(console, registry=registry)
    fetched = time.monotonic()
    with ConsoleProgress(console) as progress:
        Stack(home).up(needed_components(registry=registry), progress)
    return {"setup": round(fetched - started, 2), "up": round(time.monotonic() - fetched, 2)}


def fetch(console: Console, *, registry: bool = False) -> None:
    """Fetch everything that the stack and the jobs run into the cache folder; complete parts are kept.

    `registry`: the schema registry too.

    Raises a StackError that names the artifact that cannot be fetched.
    """
    with ConsoleSetup(console) as progress:
        ensure_java(JAVAS, progress)
        ensure((*MODULES, *REGISTRY_MODULES) if registry else MODULES, progress)
