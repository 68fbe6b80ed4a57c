"""Failpoints: an armed failpoint acts once, at the configured pass; the registry lists all failpoints."""

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
def _reset_counts() -> None:
    failpoints._passes.clear()


def program(value: str) -> subprocess.Popen[str]:
    """Start a process that passes land.before_manifest twice, with this value of the variable."""
    return subprocess.Popen(
        [sys.executable, "-c", _TWICE],
        env={failpoints.VARIABLE: value},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_an_unarmed_failpoint_costs_almost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(failpoints.VARIABLE, raising=False)
    reached("land.before_manifest")
    assert timeit.timeit(lambda: reached("land.before_manifest"), number=10_000) < 0.5


def test_only_the_armed_failpoint_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, "land.after_manifest=raise")
    reached("land.before_manifest")


def test_raise_reports_what_is_committed_and_acts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, "land.before_manifest=raise")
    with pytest.raises(FailpointReached, match=r"land\.before_manifest: .*the manifest that commits them is not"):
        reached("land.before_manifest")
    reached("land.before_manifest")  # only once, so that a retry in this process continues


def test_a_failpoint_can_act_at_a_later_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, "land.after_manifest=raise, land.before_manifest=raise@3")
    reached("land.before_manifest")
    reached("land.before_manifest")
    with pytest.raises(FailpointReached):
        reached("land.before_manifest")


def test_kill_ends_the_process() -> None:
    killed = program("land.before_manifest=kill@2")
    assert killed.communicate(timeout=30) == ("1\n", None)
    assert killed.returncode == -signal.SIGKILL


def test_pause_stops_the_process_until_it_is_resumed() -> None:
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
        ("land.before_manifests=kill", r"no failpoint 'land\.before_manifests'\. Use one of source\.before_schema,"),
        ("land.before_manifest", "'land.before_manifest' is not NAME=kill"),
        ("land.before_manifest=stop", "is not NAME=kill, NAME=pause or NAME=raise"),
        ("land.before_manifest=kill@0", "is not NAME=kill"),
        ("land.before_manifest=kill@two", "is not NAME=kill"),
    ],
)
def test_an_invalid_value_is_rejected_at_any_failpoint(
    value: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(failpoints.VARIABLE, value)
    with pytest.raises(ValueError, match=complaint):
        reached("source.before_schema")


def test_several_failpoints_can_be_armed() -> None:
    assert parse("land.before_manifest=kill,upsert.after_lease=pause@2,") == {
        "land.before_manifest": Armed(Action.KILL, 1),
        "upsert.after_lease": Armed(Action.PAUSE, 2),
    }


def test_the_registry_lists_all_failpoints_in_the_code() -> None:
    sources = Path(cdc_lake.__file__).parent.rglob("*.py")
    called = [match["name"] for path in sources for match in _CALL.finditer(path.read_text(encoding="utf-8"))]
    assert sorted(set(called)) == sorted(REGISTRY)
