"""Find the pipelines whose topics are in Avro. Reads only their YAML, because importing Dagster takes seconds.

The local stack starts the schema registry for them. YAML that is not valid is ignored here; loading.py reports it.
"""

from __future__ import annotations

from pathlib import Path

import yaml

DEFS = Path(__file__).parents[1] / "defs"
DEFS_FILE = "defs.yaml"


def names(defs: Path = DEFS) -> list[str]:
    """Return the names of the pipelines whose YAML has `stream.format: avro`, sorted."""
    return sorted(path.parent.name for path in defs.glob(f"*/{DEFS_FILE}") if _format(path) == "avro")


def _format(path: Path) -> object:
    try:
        found: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError:
        return None
    for name in ("attributes", "stream", "format"):
        found = found.get(name) if isinstance(found, dict) else None
    return found
