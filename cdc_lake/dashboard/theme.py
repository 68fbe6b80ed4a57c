"""Colours and type, for light and dark, as a chart configuration.

Here: what Vega-Lite takes as `config`, so that one chart serves both schemes. The page's own colours are in
page.css; the two are chosen together. Contrast with the card: text at least 4.5 to 1, marks that carry the
message at least 3 to 1.
Not here: what is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
TIERS = ("highlight", "marked", "other")
"""What a mark can be: it stands out, it is within the mark of a running share, or neither."""


@dataclass(frozen=True)
class Palette:
    """The colours of one scheme."""

    card: str
    text: str
    muted: str
    line: str
    tiers: tuple[str, str, str]
    """Colours of TIERS."""


LIGHT = Palette("#ffffff", "#1b2430", "#566273", "#e3e7ec", ("#c2481a", "#5b7c9f", "#a3b4c7"))
DARK = Palette("#171d26", "#e8edf3", "#9dabbb", "#2b3542", ("#ff9760", "#6f95bd", "#5c728c"))


def chart_config(palette: Palette, font: str = FONT) -> dict[str, object]:
    """The Vega-Lite configuration of one scheme; charts refer to its ranges and styles by name."""
    return {
        "background": "transparent",
        "padding": 2,
        "font": font,
        "view": {"stroke": None},
        "range": {"category": list(palette.tiers)},
        "axis": {
            "labelColor": palette.muted,
            "titleColor": palette.muted,
            "gridColor": palette.line,
            "domainColor": palette.line,
            "tickColor": palette.line,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "legend": {
            "labelColor": palette.muted,
            "titleColor": palette.muted,
            "titleFontSize": 12,
            "labelFontSize": 12,
            "titleFontWeight": "normal",
            "symbolFillColor": palette.tiers[2],
            "symbolStrokeColor": palette.card,
            "symbolOpacity": 1,
        },
        "title": {"color": palette.text, "subtitleColor": palette.muted},
        "text": {"fontSize": 12},
        "rule": {"color": palette.muted},
        "style": {
            "value": {"color": palette.text},
            "quiet": {"color": palette.muted},
            "dot": {"stroke": palette.card, "strokeWidth": 1},
            "label": {"color": palette.text, "fontWeight": 600},
            "halo": {"color": palette.card, "stroke": palette.card, "strokeWidth": 4, "fontWeight": 600},
        },
    }
