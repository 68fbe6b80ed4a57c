"""cdc-lake: change data capture from PostgreSQL into a lake, as a Dagster asset graph.

`CdcPipeline` is imported lazily: the jobs import this package on Spark's executors, where Dagster is not needed and may
not be installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdc_lake.pipeline.component import CdcPipeline

__all__ = ["CdcPipeline"]


def __getattr__(name: str) -> object:
    if name == "CdcPipeline":
        from cdc_lake.pipeline.component import CdcPipeline  # noqa: PLC0415

        return CdcPipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names: Dagster's `dg` finds component types by `dir(module)`."""
    return sorted({*globals(), *__all__})
