"""The priorities of a run's steps, as op tags of assets and checks.

Dagster's in-process executor runs ready steps in the order of their priority, 0 by default. All tables finish a stage
before the next stage begins, so that all tables are landed, and then applied, in parallel (assets/parallel_tables.py).
"""

from __future__ import annotations

from collections.abc import Mapping

_TAG = "dagster/priority"

STREAM: Mapping[str, str] = {_TAG: "3"}
"""Source and topic, and the checks that block raw: they run before any table is landed."""
RAW: Mapping[str, str] = {_TAG: "2"}
"""Raw, and the checks that block the lake: they run before any table is applied."""
LAKE: Mapping[str, str] = {_TAG: "1"}
"""Lake tables, which run before the nonblocking checks of raw, and nonblocking checks that run before the assets
downstream."""
