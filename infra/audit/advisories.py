"""The PyPA advisory database, read from a clone of it: for machines that reach no advisory service.

Here: which advisories are about a version (https://ossf.github.io/osv-schema/). Not here: asking a service
(__main__.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version


@dataclass(frozen=True)
class Finding:
    """A package's version, and the advisory that it is vulnerable by; `fixed` are versions that are not any more."""

    package: str
    version: str
    advisory: str
    fixed: tuple[str, ...]

    def __str__(self) -> str:
        """One line for people."""
        mended = f"; fixed in {', '.join(self.fixed)}" if self.fixed else ""
        return f"{self.package} {self.version}: {self.advisory}{mended}"


def findings(database: Path, package: str, version: str) -> Iterator[Finding]:
    """The advisories of a clone of https://github.com/pypa/advisory-database that are about a package's version.

    Raises FileNotFoundError where the folder is no such clone.
    """
    folder = database / "vulns"
    if not folder.is_dir():
        raise FileNotFoundError(f"{database} is not a clone of pypa/advisory-database: it has no folder vulns")
    for path in sorted((folder / canonicalize_name(package)).glob("*.yaml")):
        advisory = yaml.safe_load(path.read_text(encoding="utf-8"))
        if "withdrawn" in advisory:
            continue
        for affected in advisory.get("affected", ()):
            if _is_about(affected, package) and _affects(affected, version):
                yield Finding(package, version, advisory["id"], _fixed(affected))


def _is_about(affected: dict[str, Any], package: str) -> bool:
    about = affected["package"]
    return bool(about["ecosystem"] == "PyPI" and canonicalize_name(about["name"]) == canonicalize_name(package))


def _affects(affected: dict[str, Any], version: str) -> bool:
    if version in affected.get("versions", ()):
        return True
    ranges = (each for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM")
    return any(_inside(each["events"], Version(version)) for each in ranges)


def _inside(events: Sequence[dict[str, str]], version: Version) -> bool:
    """Whether a version lies between an `introduced` and the `fixed` or `last_affected` after it."""
    inside = False
    for event in sorted(events, key=_place):
        [(kind, text)] = event.items()
        try:
            at = Version(text)
        except InvalidVersion:
            continue
        if kind == "introduced" and version >= at:
            inside = True
        if (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


def _place(event: dict[str, str]) -> Version:
    try:
        return Version(next(iter(event.values())))
    except InvalidVersion:
        return Version("0")


def _fixed(affected: dict[str, Any]) -> tuple[str, ...]:
    events = (event for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM" for event in each["events"])
    return tuple(event["fixed"] for event in events if "fixed" in event)
