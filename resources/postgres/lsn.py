"""Log sequence numbers: PostgreSQL's text, such as `16/B374D848`, and Debezium's integer."""

from __future__ import annotations

import re

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def to_int(text: str) -> int:
    """Return the byte position in the WAL that `text` names.

    Raises:
        ValueError: `text` is not two hexadecimal numbers with a slash between them.
    """
    match = _LSN.fullmatch(text)
    if match is None:
        raise ValueError(
            f"Cannot parse {text!r} as an LSN: it is not two hexadecimal numbers with a slash between them, such as "
            "16/B374D848."
        )
    return (int(match[1], 16) << 32) | int(match[2], 16)


def to_text(position: int) -> str:
    """Return the LSN of a byte position, as PostgreSQL prints it.

    Raises:
        ValueError: the position is negative or has more than 64 bits.
    """
    if not 0 <= position < 1 << 64:
        raise ValueError(f"Cannot write {position} as an LSN: it is not an unsigned 64-bit number.")
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
