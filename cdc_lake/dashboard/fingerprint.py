"""What a page is made of, as one short text: the same text, the same page but for the moment that stands on it.

Here: the declaration of the page, what its queries gave, this package's own files and the versions of the libraries
that draw.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

from cdc_lake.dashboard.data import Query
from cdc_lake.dashboard.spec import DashboardSpec

_DRAWN_BY = ("altair", "vl-convert-python")


def fingerprint(spec: DashboardSpec, query: Query) -> str:
    """SHA-256, in hexadecimal. Raises whatever `query` raises."""
    digest = hashlib.sha256(spec.model_dump_json(exclude={"quicksight"}).encode())
    for sql in sorted({sql for _, sql in spec.queries()}):
        result = query(sql)
        digest.update(repr((sql, tuple(result.columns), tuple(map(tuple, result.rows)))).encode())
    for library in _DRAWN_BY:
        digest.update(f"{library} {version(library)}".encode())
    for file in sorted(path for path in Path(__file__).parent.rglob("*") if path.suffix not in ("", ".pyc")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
