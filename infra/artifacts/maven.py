"""Runs Maven on one module's pom: copies its dependencies into a folder, and builds its jar."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from infra.errors import StackError

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
ABSENT = re.compile(
    r"(?:Could not find artifact|Failure to find|artifacts could not be resolved:) ([\w.\-]+:[\w.\-]+:[^\s,()]+)"
)
FORGED = re.compile(r"Could not transfer (?:artifact|metadata) (\S+) [^\n]*Checksum validation failed, expected")
UNSUMMED = "no checksums available"
BROKEN = re.compile(r"Could not transfer (?:artifact|metadata) (\S+)")


def find_maven() -> str | None:
    """Return the path of the Maven on PATH, or None."""
    return shutil.which("mvn")


def copy_dependencies(pom: Path, into: Path, repository: Path, log: Path) -> None:
    """Copy the runtime dependencies of `pom` into the folder `into`.

    `repository` is the local Maven repository, `log` is the file for Maven's output. A file whose checksum differs from
    the one that the repository publishes is rejected. A file without a published checksum is accepted, because
    jar_locks.py checks every file against the module's lock. Raises a StackError that names the coordinate that cannot
    be fetched.
    """
    goal = (f"{PLUGIN}:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={into}")
    _run_goal(pom, goal, repository, log)


def build_jar(pom: Path, into: Path, repository: Path, log: Path) -> None:
    """Build the jar of `pom` in the folder `into`, which the pom's `target` property names. Raises as above."""
    _run_goal(pom, ("package", f"-Dtarget={into}"), repository, log)


def _run_goal(pom: Path, goal: Sequence[str], repository: Path, log: Path) -> None:
    maven = find_maven()
    if maven is None:
        raise StackError(
            "Cannot fetch jars: Maven (mvn) is not on PATH. Install it with a JDK, then run `cdc-lake setup` again."
        )
    command = [maven, "-B", "-ntp", "-f", str(pom), *goal, f"-Dmaven.repo.local={repository}"]
    log.parent.mkdir(parents=True, exist_ok=True)
    code, output = _run([*command, "--strict-checksums"], log)
    if code != 0 and UNSUMMED in output:
        code, output = _run(command, log)
    if code != 0:
        raise StackError(explain(output, pom.parent.name, log))


def _run(command: list[str], log: Path) -> tuple[int, str]:
    with log.open("w", encoding="utf-8") as output:
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    return code, log.read_text(encoding="utf-8", errors="replace")


def explain(output: str, module: str, log: Path) -> str:
    """Return the error message for Maven's output: the coordinate, the cause, and what to do."""
    if forged := FORGED.search(output):
        return (
            f"Cannot fetch the jars of {module}: {forged.group(1)} does not have the checksum that its repository "
            f"publishes. Run `cdc-lake setup` again; if it fails again, ask the repository's operator. Maven's "
            f"output is in {log}."
        )
    if broken := BROKEN.search(output):
        return (
            f"Cannot fetch the jars of {module}: {broken.group(1)} could not be downloaded. Check the network, the "
            f"proxy and the mirror, then run `cdc-lake setup` again; it continues. Maven's output is in {log}."
        )
    if absent := ABSENT.search(output):
        return (
            f"Cannot fetch the jars of {module}: {absent.group(1)} is in none of the configured Maven repositories. "
            f"Add one that has it to Maven's settings.xml, or change connectors/maven/{module}/pom.xml. Maven's output "
            f"is in {log}."
        )
    errors = [line for line in output.splitlines() if line.startswith("[ERROR]")]
    first = errors[0].removeprefix("[ERROR]").strip() if errors else "no message"
    return f"Cannot fetch the jars of {module}: Maven failed ({first}). Its output is in {log}."
