"""`python -m infra.audit [--advisories CLONE] LOCK…`: the lock files against known vulnerabilities.

pip-audit asks PyPI. It passes what PyPI doesn't answer about, with exit code 0: here that counts as not checked, is
said, and is exit code 2, unless a clone of the advisory database answers instead, or `--allow-unchecked` was said.
Exit code 1 for a vulnerability.

Here: asking, and adding up the answers. Not here: the clone's format (advisories.py).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.audit.advisories import Finding, findings

VULNERABLE, UNCHECKED = 1, 2


@dataclass(frozen=True)
class Answers:
    """What a service said of a lock file's packages: findings, and names and versions that it said nothing of."""

    checked: int
    found: Sequence[Finding]
    unchecked: Sequence[tuple[str, str]]


def ask(lock: Path) -> Answers:
    """PyPI's answers about a lock file. Raises RuntimeError where pip-audit ends without any."""
    command = (sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--require-hashes", "--disable-pip")
    ran = subprocess.run(
        [*command, "--format", "json", "--progress-spinner", "off"], capture_output=True, text=True, check=False
    )
    try:
        packages = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError) as error:
        raise RuntimeError(f"pip-audit of {lock} ended with {ran.returncode}: {ran.stderr.strip()[-500:]}") from error
    return understood(lock, packages)


def understood(lock: Path, packages: Sequence[dict[str, object]]) -> Answers:
    """pip-audit's JSON, with the versions of what it skipped from the lock file."""
    locked = versions(lock)
    found: list[Finding] = []
    unchecked: list[tuple[str, str]] = []
    for package in packages:
        name = str(package["name"])
        if "skip_reason" in package:
            unchecked.append((name, locked[name]))
            continue
        for each in package["vulns"]:  # type: ignore[attr-defined]
            found.append(Finding(name, str(package["version"]), each["id"], tuple(each["fix_versions"])))
    return Answers(len(packages) - len(unchecked), found, unchecked)


def versions(lock: Path) -> dict[str, str]:
    """The versions that a lock file names: lines of `name==version`."""
    lines = (line.split()[0] for line in lock.read_text(encoding="utf-8").splitlines() if line[:1].isalnum())
    return dict(line.split("==", 1) for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.audit", description="Known vulnerabilities of what is locked."
    )
    parser.add_argument("lock", nargs="+", type=Path, help="a lock file")
    parser.add_argument("--advisories", type=Path, help="a clone of https://github.com/pypa/advisory-database")
    parser.add_argument("--allow-unchecked", action="store_true", help="exit code 0 where nobody could be asked")
    asked = parser.parse_args(arguments)
    bad: set[str] = set()
    open_questions: set[str] = set()
    for lock in asked.lock:
        try:
            answers = ask(lock)
        except RuntimeError as error:
            print(f"{lock}: {error}")
            answers = Answers(0, (), list(versions(lock).items()))
        print(f"{lock}: {answers.checked} packages checked by pip-audit, {len(answers.unchecked)} not")
        bad.update(map(str, answers.found))
        if asked.advisories is None:
            open_questions.update(f"{name} {version}" for name, version in answers.unchecked)
            continue
        for name, version in answers.unchecked:
            bad.update(map(str, findings(asked.advisories, name, version)))
        print(f"{lock}: {len(answers.unchecked)} packages checked against {asked.advisories}")
    for line in sorted(bad):
        print(f"VULNERABLE {line}")
    if open_questions:
        print(
            f"NOT CHECKED: {len(open_questions)} packages, since PyPI's advisories don't answer here. Clone "
            "https://github.com/pypa/advisory-database and say ARGS='--advisories CLONE', or accept that for now with "
            "ARGS=--allow-unchecked"
        )
    if bad:
        return VULNERABLE
    return UNCHECKED if open_questions and not asked.allow_unchecked else 0


if __name__ == "__main__":
    sys.exit(main())
