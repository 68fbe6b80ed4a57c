"""Short digests, to compare with a stored one and to make run keys unique."""

from __future__ import annotations

import hashlib


def short_digest(text: str) -> str:
    """Return the first 12 hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
