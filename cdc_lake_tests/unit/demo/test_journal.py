"""The demo's journal: what is done is not done again, and no cut leaves it half written."""

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
        """A step that notes its name and returns it."""

        def step() -> dict[str, str]:
            self.done.append(name)
            return {"made": name}

        return step


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The journal's file, in a folder that is not there yet."""
    return tmp_path / "home" / "demo.json"


def test_a_step_is_done_once(path: Path) -> None:
    work, journal = Work(), Journal(path, resume=False)
    assert journal.step("load", work("load")) == {"made": "load"}
    assert journal.step("load", work("load")) == {"made": "load"}
    assert work.done == ["load"]


def test_resuming_skips_what_is_done_and_remembers_results_and_seconds(path: Path) -> None:
    work = Work()
    first = Journal(path, resume=False)
    for name in ("reset", "load", "source"):
        first.step(name, work(name))
    again = Journal(path, resume=True)
    for name in ("reset", "load", "source", "topic"):
        assert again.step(name, work(name)) == {"made": name}
    assert work.done == ["reset", "load", "source", "topic"]
    assert list(again.seconds()) == ["reset", "load", "source", "topic"]
    assert again.seconds()["load"] == first.seconds()["load"]


def test_a_step_that_fails_is_done_again(path: Path) -> None:
    def fails() -> None:
        raise RuntimeError("cut off")

    first = Journal(path, resume=False)
    first.step("load", Work()("load"))
    with pytest.raises(RuntimeError):
        first.step("source", fails)
    work, again = Work(), Journal(path, resume=True)
    assert "source" not in again.seconds()
    again.step("load", work("load"))
    again.step("source", work("source"))
    assert work.done == ["source"]


def test_starting_over_forgets(path: Path) -> None:
    Journal(path, resume=False).step("load", Work()("load"))
    work = Work()
    Journal(path, resume=False).step("load", work("load"))
    assert work.done == ["load"]


def test_what_is_cut_off_in_its_first_step_does_not_resume_the_demo_before(path: Path) -> None:
    Journal(path, resume=False).step("load", Work()("load"))
    Journal(path, resume=False)  # and the process dies
    assert Journal(path, resume=True).seconds() == {}


def test_resuming_without_a_journal_begins(path: Path) -> None:
    assert Journal(path, resume=True).seconds() == {}


def test_a_cut_while_writing_leaves_the_journal_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(path, resume=False)
    journal.step("load", Work()("load"))

    def cut(_self: Path, _target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", cut)
    with pytest.raises(KeyboardInterrupt):
        journal.step("source", Work()("source"))
    assert list(Journal(path, resume=True).seconds()) == ["load"]


def test_a_half_written_file_of_a_demo_before_is_not_read(path: Path) -> None:
    Journal(path, resume=False).step("load", Work()("load"))
    path.with_name(f".{path.name}.1.tmp").write_text('{"load": {"resu')
    again = Journal(path, resume=True)
    again.step("source", Work()("source"))
    assert list(json.loads(path.read_text())) == ["load", "source"]


HOLDS = (
    "import sys, filelock\nwith filelock.FileLock(sys.argv[1]):\n    print('held', flush=True)\n    sys.stdin.read()\n"
)


def test_two_demos_on_one_folder_are_kept_apart_until_the_first_one_dies(tmp_path: Path) -> None:
    journal = tmp_path / "home" / "demo.json"
    with exclusive(journal):
        pass
    # Another process: within one, filelock itself sees to it.
    first = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "home" / "demo.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    with (
        pytest.raises(DemoRunningError, match=r"another `cdc-lake demo` is running on the state folder .*home"),
        exclusive(journal),
    ):
        pytest.fail("two have it")
    first.kill()
    first.communicate()
    with exclusive(journal):
        pass
