"""Parser of a rendered page."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any


@dataclass
class Page(HTMLParser):
    """A page's references, tags, scripts, text and tables."""

    html: str
    references: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    scripts: list[tuple[dict[str, str | None], str]] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    text: str = ""
    policy: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._script: dict[str, str | None] | None = None
        self._table: str | None = None
        self._cell = False
        self.feed(self.html)

    @property
    def charts(self) -> dict[str, Any]:
        """Return the charts in the page: `spec` in Vega-Lite, and `show`."""
        found = next(text for attributes, text in self.scripts if attributes.get("id") == "charts")
        return dict(json.loads(found)["charts"])

    def values(self, chart: str) -> list[dict[str, Any]]:
        """Return the rows of a chart."""
        return list(self.charts[chart]["spec"]["data"]["values"])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append(tag)
        self.references += [
            value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "poster")
        ]
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"] or ""
        if tag == "script":
            self._script = attributes
            self.scripts.append((attributes, ""))
        if tag == "table":
            self._table = attributes["id"] or ""
            self.tables[self._table] = []
        if self._table and tag == "tr":
            self.tables[self._table].append([])
        if self._table and tag in ("td", "th"):
            self.tables[self._table][-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None
        if tag == "table":
            self._table = None
        if tag in ("td", "th"):
            self._cell = False

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)
            return
        self.text += data
        if self._table and self._cell:
            self.tables[self._table][-1][-1] += data
