"""The secret scan of `make lint` and pre-commit: it fails on a new finding and accepts those in the baseline."""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
KEY = f'AWS = "AKIA{"".join(secrets.choice("ABCDEFGHIJ") for _ in range(16))}"\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with a copy of our baseline."""
    subprocess.run(("git", "init", "--quiet"), cwd=tmp_path, check=True)
    (tmp_path / ".secrets.baseline").write_text((ROOT / ".secrets.baseline").read_text())
    return tmp_path


def hook() -> str:
    """Return the command of the pre-commit hook."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    [entry] = [each["entry"] for each in config["repos"][0]["hooks"] if each["id"] == "secrets"]
    return str(entry)


def scan(repository: Path, file: str) -> subprocess.CompletedProcess[str]:
    """Scan one file with the command of the hook."""
    program, *options = hook().split()
    return subprocess.run((ROOT / program, *options, file), cwd=repository, capture_output=True, text=True, check=False)


def test_a_new_secret_fails_and_is_named(repository: Path) -> None:
    (repository / "settings.py").write_text(f"\n{KEY}")
    scanned = scan(repository, "settings.py")
    assert scanned.returncode == 1
    assert "AWS Access Key" in scanned.stdout
    assert "settings.py:2" in scanned.stdout
    assert KEY.split('"')[1] not in scanned.stdout


def test_a_finding_of_the_baseline_may_move_to_another_line(repository: Path) -> None:
    baseline = (repository / ".secrets.baseline").read_text()
    file = next(iter(json.loads(baseline)["results"]))
    (repository / file).parent.mkdir(parents=True)
    (repository / file).write_text(f"\n\n{(ROOT / file).read_text()}")
    assert scan(repository, file).returncode == 0
    assert (repository / ".secrets.baseline").read_text() == baseline


def test_make_runs_the_command_of_the_hook() -> None:
    assert hook().replace(".venv/bin", "$(BIN)") in (ROOT / "Makefile").read_text()
