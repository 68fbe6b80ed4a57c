"""The advisory database, read from a clone: which versions an advisory is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.audit.advisories import findings

ADVISORY = """
id: PYSEC-2099-1
affected:
- package: {ecosystem: PyPI, name: Left_Pad}
  ranges:
  - {type: GIT, events: [{introduced: "0"}]}
  - type: ECOSYSTEM
    events:
    - {introduced: 2.0.0}
    - {fixed: 2.0.7}
    - {introduced: "0"}
    - {fixed: 1.26.18}
    - {introduced: "3.0"}
    - {last_affected: "3.1"}
  versions: [1.26.17, 9.9.9]
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A clone with one advisory, and one that was withdrawn."""
    folder = tmp_path / "vulns" / "left-pad"
    folder.mkdir(parents=True)
    (folder / "PYSEC-2099-1.yaml").write_text(ADVISORY)
    (folder / "PYSEC-2099-2.yaml").write_text(f"{ADVISORY}withdrawn: 2099-01-01\n".replace("2099-1\n", "2099-2\n"))
    return tmp_path


@pytest.mark.parametrize(
    ("version", "vulnerable"),
    [
        ("0.1", True),
        ("1.26.17", True),
        ("1.26.18", False),
        ("1.99", False),
        ("2.0.0rc1", False),
        ("2.0.0", True),
        ("2.0.6", True),
        ("2.0.7", False),
        ("3.0", True),
        ("3.1", True),
        ("3.1.1", False),
        ("9.9.9", True),
    ],
)
def test_versions(database: Path, version: str, vulnerable: bool) -> None:
    found = list(findings(database, "left.pad", version))
    assert [each.advisory for each in found] == ["PYSEC-2099-1"] * vulnerable
    assert all(str(each).endswith("PYSEC-2099-1; fixed in 2.0.7, 1.26.18") for each in found)


def test_another_package(database: Path) -> None:
    assert list(findings(database, "right-pad", "1.0")) == []


def test_what_is_no_clone(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a clone of pypa/advisory-database"):
        list(findings(tmp_path, "left-pad", "1.0"))
