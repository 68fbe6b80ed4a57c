"""Seed and number of the random histories; CDC_LAKE_SEED and CDC_LAKE_HISTORIES set others."""

from __future__ import annotations

import os

from cdc_lake_tests.pytest_hooks.long_test_sizes import SEED_VARIABLE, seed, size
from cdc_lake_tests.pytest_hooks.seeds import named_in_failures

SEED = seed()
seeded = named_in_failures(SEED_VARIABLE, SEED)
HISTORIES = int(os.environ.get("CDC_LAKE_HISTORIES") or size(in_ci=60, full=300))
"""The number of histories of each of five kinds."""
