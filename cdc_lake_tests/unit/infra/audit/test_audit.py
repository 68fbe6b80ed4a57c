"""`make audit`: nothing that could not be asked about passes for checked, and a planted secret is found."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.audit import __main__ as audit
from infra.audit import committed

LOCK = "left-pad==1.0 \\\n    --hash=sha256:00\nright-pad==2.0 \\\n    --hash=sha256:11\n"
FOUND = {"name": "left-pad", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
CLEAN = {"name": "right-pad", "version": "2.0", "vulns": []}
SKIPPED = {"name": "right-pad", "skip_reason": "Dependency not found on PyPI"}


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock file of two packages."""
    path = tmp_path / "requirements.lock"
    path.write_text(LOCK)
    return path


def answering(monkeypatch: pytest.MonkeyPatch, *packages: dict[str, Any]) -> None:
    """Let pip-audit answer this; without packages it says nothing that is JSON."""
    printed = json.dumps({"dependencies": packages}) if packages else ""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[:3] == [sys.executable, "-m", "pip_audit"]
        return subprocess.CompletedProcess(command, 1, printed, "no route to host")

    monkeypatch.setattr(subprocess, "run", run)


def test_clean(monkeypatch: pytest.MonkeyPatch, lock: Path) -> None:
    answering(monkeypatch, {**FOUND, "vulns": []}, CLEAN)
    assert audit.main([str(lock)]) == 0


def test_a_vulnerability(monkeypatch: pytest.MonkeyPatch, lock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answering(monkeypatch, FOUND, SKIPPED)
    assert audit.main([str(lock), "--allow-unchecked"]) == audit.VULNERABLE
    assert "VULNERABLE left-pad 1.0: PYSEC-1; fixed in 1.1" in capsys.readouterr().out


def test_what_was_skipped_is_not_checked(
    monkeypatch: pytest.MonkeyPatch, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, {**FOUND, "vulns": []}, SKIPPED)
    assert audit.main([str(lock)]) == audit.UNCHECKED
    assert "NOT CHECKED: 1 packages" in capsys.readouterr().out
    assert audit.main([str(lock), "--allow-unchecked"]) == 0


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch, lock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answering(monkeypatch)
    assert audit.main([str(lock)]) == audit.UNCHECKED
    said = capsys.readouterr().out
    assert "no route to host" in said
    assert "NOT CHECKED: 2 packages" in said


def test_a_clone_answers_instead(monkeypatch: pytest.MonkeyPatch, lock: Path, tmp_path: Path) -> None:
    folder = tmp_path / "vulns" / "right-pad"
    folder.mkdir(parents=True)
    answering(monkeypatch, CLEAN | {"name": "left-pad"}, SKIPPED)
    assert audit.main([str(lock), "--advisories", str(tmp_path)]) == 0
    told = {"id": "PYSEC-2", "affected": [{"package": {"ecosystem": "PyPI", "name": "right-pad"}, "versions": ["2.0"]}]}
    (folder / "PYSEC-2.yaml").write_text(json.dumps(told))
    assert audit.main([str(lock), "--advisories", str(tmp_path)]) == audit.VULNERABLE


def test_the_lock_files_of_this_repository_are_read() -> None:
    root = Path(__file__).parents[4]
    found = audit.versions(root / "requirements.lock")
    assert found["pyspark"] == "3.5.7"
    assert found.items() <= audit.versions(root / "requirements-dev.lock").items()


def test_a_planted_secret_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "settings.py"
    planted.write_text(f'AWS = "AKIA{"".join(secrets.choice("ABCDEFGHIJ") for _ in range(16))}"\n')
    [told] = committed.unseen(committed.scanned([str(planted)]), tmp_path / "no-baseline")
    assert told == f"{planted}:1: AWS Access Key"


def test_a_known_finding_may_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(("git", "init", "--quiet"), check=True)
    file = Path("settings.py")
    line = f'password = "{secrets.token_hex(20)}"\n'
    file.write_text(line)
    assert committed.main(["settings.py"]) == 1
    assert committed.main(["settings.py", "--accept"]) == 0
    file.write_text(f"\n\n{line}")
    assert committed.main(["settings.py"]) == 0
    file.write_text(f'{line}secret = "{secrets.token_hex(20)}"\n')
    assert committed.main(["settings.py"]) == 1
