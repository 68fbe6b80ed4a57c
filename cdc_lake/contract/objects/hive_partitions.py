"""The folders of partitions, as Hive names them: `<column>=<value>`, with special characters escaped.

The rules are those of org.apache.hadoop.hive.common.FileUtils, which Spark, Trino and Athena follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

_NULL = "__HIVE_DEFAULT_PARTITION__"
NULL_TEXTS = (_NULL, r"\N")
"""The texts that readers of a partition column return as NULL, as they do for an empty text. Hudi names the folder of
NULL by the first one too (KeyGenUtils, since 0.12)."""
_ESCAPED = frozenset([*map(chr, range(1, 32)), *"\"#%'*/:=?\\{[]^", "\x7f"])
_LARGEST, _LARGEST_ALL = 255, 400
"""The largest size of a folder's name, which file systems have, and of all of them together, in bytes of UTF-8. The
other parts of a raw object's key then fit into the 1,024 bytes of S3."""


def folder(column: str, value: str | None) -> str:
    """Return the folder of a value; that of NULL is `<column>=__HIVE_DEFAULT_PARTITION__`."""
    return f"{column}={_NULL if value is None else ''.join(map(_escaped, value))}"


def safe_bytes(column: str) -> int:
    """Return how many bytes of UTF-8 a value may have so that its folder surely fits: each can become three."""
    return (_LARGEST - len(f"{column}=".encode())) // 3


def parse(name: str) -> tuple[str, str | None]:
    """Return column and value of a folder."""
    column, _, value = name.partition("=")
    return column, None if value == _NULL else unquote(value)


def fault(columns: Sequence[str], values: Sequence[str | None]) -> str | None:
    """Return why a row with these values cannot be stored in a partition; None if it can."""
    for column, value in zip(columns, values, strict=True):
        if value is not None and value in {"", *NULL_TEXTS}:
            return f"the partition column {column} is '{value}', which readers return as NULL"
    sizes = [len(folder(column, value).encode()) for column, value in zip(columns, values, strict=True)]
    if max(sizes, default=0) > _LARGEST or sum(sizes) > _LARGEST_ALL:
        return f"the names of its partition's folders have {sum(sizes)} bytes, more than a key can hold"
    return None


def _escaped(character: str) -> str:
    return f"%{ord(character):02X}" if character in _ESCAPED else character
