"""Field types that several mappings in a pipeline's YAML use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator


def matching(pattern: str, advice: str) -> AfterValidator:
    """Return a validator that rejects a text that does not match the pattern; `advice` is its error message."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(advice)
        return text

    return AfterValidator(check)


def unique(texts: list[str]) -> list[str]:
    """Return the list. Raises ValueError if it contains a text more than once."""
    if twice := repeated(texts):
        raise ValueError(f"name each once: {', '.join(twice)} appears more than once")
    return texts


def repeated(texts: Iterable[str]) -> list[str]:
    """Return the texts that appear more than once."""
    return sorted(text for text, count in Counter(texts).items() if count > 1)


Identifier = Annotated[
    str,
    matching(
        r"[a-z_][a-z0-9_]{0,47}",
        "use lower-case letters, digits and '_', at most 48 of them, not starting with a digit",
    ),
]
Identifiers = Annotated[list[Identifier], AfterValidator(unique)]
ColumnName = Annotated[
    str, matching(r"[^\x00]{1,63}", "name a column as the source's catalog does: 1 to 63 characters, case matters")
]
