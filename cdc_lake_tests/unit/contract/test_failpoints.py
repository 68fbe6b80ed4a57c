"""Failpoints: what the variable says happens, once, at the time that it says; and the registry is complete."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import timeit
from pathlib import Path

import psutil
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

import cdc_lake
from cdc_lake.contract import failpoints
from cdc_lake.contract.failpoints import REGISTRY, Action, Armed, FailpointReached, parse, reached

_CALL = re.compile(r'failpoints\.reached\("(?P<name>[^"]+)"\)')
_TWICE = """
from cdc_lake.contract import failpoints
for time in (1, 2):
    failpoints.reached("land.before_manifest")
    print(time, flush=True)
"""


@pytest.fixture(autouse=True)
def _counted_anew() -> None:
    failpoints._passes.clear()


def program(value: str) -> subprocess.Popen[str]:
    """A process that gets to land.before_manifest twice, with this value of the variable."""
    return subprocess.Popen(
        [sys.executable, "-c", _TWICE],
        env={failpoints.VARIABLE: value},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_nothing_is_armed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(failpoints.VARIABLE, raising=False)
    reached("land.before_manifest")
    assert timeit.timeit(lambda: reached("land.before_manifest"), number=10_000) < 0.5


def test_another_place_is_armed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, "land.after_manifest=raise")
    reached("land.before_manifest")


def test_raise_says_what_is_done_and_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, "land.before_manifest=raise")
    with pytest.raises(FailpointReached, match=r"land\.before_manifest: .*the manifest that commits them is not"):
        reached("land.before_manifest")
    reached("land.before_manifest")  # once: what runs again in this process goes on


def test_the_third_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, "land.after_manifest=raise, land.before_manifest=raise@3")
    reached("land.before_manifest")
    reached("land.before_manifest")
    with pytest.raises(FailpointReached):
        reached("land.before_manifest")


def test_kill() -> None:
    killed = program("land.before_manifest=kill@2")
    assert killed.communicate(timeout=30) == ("1\n", None)
    assert killed.returncode == -signal.SIGKILL


def test_pause() -> None:
    paused = program("land.before_manifest=pause")
    process = psutil.Process(paused.pid)
    Retrying(
        retry=retry_if_result(lambda s: s != psutil.STATUS_STOPPED), stop=stop_after_delay(30), wait=wait_fixed(0.05)
    )(process.status)
    process.resume()
    assert paused.communicate(timeout=30) == ("1\n2\n", None)
    assert paused.returncode == 0


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("land.before_manifests=kill", r"no failpoint 'land\.before_manifests'; there are: source\.before_schema,"),
        ("land.before_manifest", "'land.before_manifest' is not NAME=kill"),
        ("land.before_manifest=stop", "is not NAME=kill, NAME=pause or NAME=raise"),
        ("land.before_manifest=kill@0", "is not NAME=kill"),
        ("land.before_manifest=kill@two", "is not NAME=kill"),
    ],
)
def test_a_value_that_is_not_valid(value: str, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whatever place the process gets to first."""
    monkeypatch.setenv(failpoints.VARIABLE, value)
    with pytest.raises(ValueError, match=complaint):
        reached("source.before_schema")


def test_several() -> None:
    assert parse("land.before_manifest=kill,upsert.after_lease=pause@2,") == {
        "land.before_manifest": Armed(Action.KILL, 1),
        "upsert.after_lease": Armed(Action.PAUSE, 2),
    }


def test_the_registry_is_what_the_product_reaches() -> None:
    sources = Path(cdc_lake.__file__).parent.rglob("*.py")
    called = [match["name"] for path in sources for match in _CALL.finditer(path.read_text(encoding="utf-8"))]
    assert sorted(set(called)) == sorted(REGISTRY)
