"""The tests that docs/reliability.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
_NAMED = re.compile(r"`((?:unit|integration|faults|e2e)/[\w/]+\.py)(?:::(\w+))?`")


def test_every_named_test_exists() -> None:
    references = _NAMED.findall((ROOT / "docs" / "reliability.md").read_text())
    assert len(references) > 30
    tests = {path: ROOT / "cdc_lake_tests" / path for path, _ in references}
    assert [path for path, file in tests.items() if not file.is_file()] == []
    assert [
        f"{path}::{name}" for path, name in references if name and f"def {name}(" not in tests[path].read_text()
    ] == []
