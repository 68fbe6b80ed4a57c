"""Where and in which format a sink connector writes the objects that are adopted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.sinks.sink_lines import Framing
from cdc_lake.contract.sinks.sink_names import Layout

_ENVELOPES: Mapping[Layout, Framing] = {
    "lenses": "lenses_envelope",
    "lenses_by_field": "lenses_envelope",
    "aiven": "aiven_envelope",
}


@dataclass(frozen=True)
class Sink:
    """Where and in which format a sink connector writes one topic.

    Raises ContractError for an envelope that the vendor does not support, and for a layout by fields without one.
    """

    layout: Layout
    prefix: str
    envelope: bool = False

    def __post_init__(self) -> None:
        if self.envelope and self.layout not in _ENVELOPES:
            raise ContractError(f"a {self.layout} sink writes no envelope with offsets; remove envelope")
        if self.layout == "lenses_by_field" and not self.envelope:
            raise ContractError(
                "objects of a sink that partitions by fields have interleaved offsets, and their names contain only "
                "the last one. Write an envelope (PROPERTIES ('store.envelope'=true) in the KCQL) and set envelope: "
                "true, or use the layout lenses, without partitioning"
            )

    @property
    def framing(self) -> Framing:
        """The format of a line."""
        return _ENVELOPES[self.layout] if self.envelope else "value"

    @property
    def ordered(self) -> bool:
        """Whether a partition's objects do not overlap, except for records that the connector writes again."""
        return self.layout != "lenses_by_field"
