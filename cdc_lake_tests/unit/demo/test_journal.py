"""The demo's journal: completed steps are not repeated, and an interruption does not damage the file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc_lake.demo.journal import DemoRunningError, Journal, exclusive


class Work:
    """Steps that count how often they run."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def __call__(self, name: str) -> Callable[[], dict[str, str]]:
        """Return a step that records and returns its name."""

        def step() -> dict[str, str]:
            self.done.append(name)
            return {"made": name}

        return step


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The journal's file, in a folder that does not exist yet."""
    return tmp_path / "home" / "demo.json"


def test_a_step_runs_once(path: Path) -> None:
    work, journal = Work(), Journal(path, resume=False)
    assert journal.step("load", work("load")) == {"made": "load"}
    assert journal.step("load", work("load")) == {"made": "load"}
    assert work.done == ["load"]


def test_resuming_skips_completed_steps_and_keeps_results_and_seconds(path: Path) -> None:
    work = Work()
    first = Journal(path, resume=False)
    for name in ("reset", "load", "source"):
        first.step(name, work(name))
    resumed = Journal(path, resume=True)
    for name in ("reset", "load", "source", "topic"):
        assert resumed.step(name, work(name)) == {"made": name}
    assert work.done == ["reset", "load", "source", "topic"]
    assert list(resumed.seconds()) == ["reset", "load", "source", "topic"]
    assert resumed.seconds()["load"] == first.seconds()["load"]


def test_a_failed_step_is_repeated(path: Path) -> None:
    def fails() -> None:
        raise RuntimeError("interrupted")

    first = Journal(path, resume=False)
    first.step("load", Work()("load"))
    with pytest.raises(RuntimeError):
        first.step("source", fails)
    work, resumed = Work(), Journal(path, resume=True)
    assert "source" not in resumed.seconds()
    resumed.step("load", work("load"))
    resumed.step("source", work("source"))
    assert work.done == ["source"]


def test_a_new_journal_discards_the_previous_one(path: Path) -> None:
    Journal(path, resume=False).step("load", Work()("load"))
    work = Work()
    Journal(path, resume=False).step("load", work("load"))
    assert work.done == ["load"]


def test_an_interruption_in_the_first_step_does_not_resume_the_previous_demo(path: Path) -> None:
    Journal(path, resume=False).step("load", Work()("load"))
    Journal(path, resume=False)  # then the process dies
    assert Journal(path, resume=True).seconds() == {}


def test_resuming_without_a_journal_begins_a_new_one(path: Path) -> None:
    assert Journal(path, resume=True).seconds() == {}


def test_an_interrupted_write_keeps_the_previous_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(path, resume=False)
    journal.step("load", Work()("load"))

    def interrupt(_self: Path, _target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        journal.step("source", Work()("source"))
    assert list(Journal(path, resume=True).seconds()) == ["load"]


def test_an_incomplete_temporary_file_is_ignored(path: Path) -> None:
    Journal(path, resume=False).step("load", Work()("load"))
    path.with_name(f".{path.name}.1.tmp").write_text('{"load": {"resu')
    resumed = Journal(path, resume=True)
    resumed.step("source", Work()("source"))
    assert list(json.loads(path.read_text())) == ["load", "source"]


HOLD_LOCK = (
    "import sys, filelock\nwith filelock.FileLock(sys.argv[1]):\n    print('held', flush=True)\n    sys.stdin.read()\n"
)


def test_a_second_demo_on_one_folder_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    journal = tmp_path / "home" / "demo.json"
    with exclusive(journal):
        pass
    # Another process, because filelock itself excludes a second lock within one process.
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(tmp_path / "home" / "demo.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    with (
        pytest.raises(DemoRunningError, match=r"another one is running on the state folder .*home"),
        exclusive(journal),
    ):
        pytest.fail("both processes hold the lock")
    first.kill()
    first.communicate()
    with exclusive(journal):
        pass
