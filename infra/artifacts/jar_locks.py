"""Reads, checks and writes `jars.lock`, the file next to a module's pom with the SHA-256 sums of the module's files.

The format is that of `sha256sum`. `python -m infra.artifacts.jar_locks` (`make lock-jars`) fetches every module
and writes its lock.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from infra.errors import StackError

NAME = "jars.lock"


def locked(pom: Path) -> dict[str, str]:
    """Return the SHA-256 sums in the module's lock, in hex, by file name."""
    lines = pom.with_name(NAME).read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}


def sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 sums of the files in the folder, in hex, by file name."""
    return {path.name: _sum(path) for path in sorted(folder.iterdir())}


def verify(folder: Path, pom: Path) -> None:
    """Compare the files in the folder with the module's lock. Raises a StackError that names each difference."""
    module, expected, found = pom.parent.name, locked(pom), sums(folder)
    if faults := _faults(expected, found):
        raise StackError(
            f"Cannot use the jars of {module}: {'; '.join(faults)}. The downloaded files were deleted. Run "
            "`cdc-lake setup` again; if it fails again, ask the Maven repository's operator. After a change of the "
            "pom, run `make lock-jars`."
        )


def _faults(expected: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    changed = [name for name in expected.keys() & found.keys() if expected[name] != found[name]]
    return [
        *(f"{name} has the SHA-256 sum {found[name]}, but {NAME} has {expected[name]}" for name in sorted(changed)),
        *(f"{name} is not in {NAME}" for name in sorted(found.keys() - expected.keys())),
        *(f"{name} was not downloaded" for name in sorted(expected.keys() - found.keys())),
    ]


def write(folder: Path, pom: Path) -> None:
    """Write the module's lock from the files in the folder."""
    lines = [f"{digest}  {name}\n" for name, digest in sums(folder).items()]
    pom.with_name(NAME).write_text("".join(lines), encoding="utf-8")


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(modules: Sequence[str]) -> None:
    """Fetch the modules (all by default) into a temporary folder and write their locks."""
    from infra.artifacts import artifacts, maven  # noqa: PLC0415 - artifacts.py imports this module

    with tempfile.TemporaryDirectory() as scratch:
        for module in modules or artifacts.ALL_MODULES:
            into = Path(scratch, module)
            maven.copy_dependencies(artifacts.pom_of(module), into, Path(scratch, "m2"), Path(scratch, "log"))
            write(into, artifacts.pom_of(module))
            print(artifacts.pom_of(module).with_name(NAME))


if __name__ == "__main__":
    main(sys.argv[1:])
