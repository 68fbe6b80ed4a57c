"""The suites of CI: the folders that it passes to pytest together."""

from __future__ import annotations

from pathlib import Path

import pytest

SUITES = ("unit", "integration-e2e-faults", "infra_aws")
"""The names of CI's runs; trial counts and durations of other runs are not counted."""


def suite_name(config: pytest.Config) -> str:
    """Return the name of pytest's arguments as in SUITES."""
    return "-".join(Path(arg).name for arg in config.args)
