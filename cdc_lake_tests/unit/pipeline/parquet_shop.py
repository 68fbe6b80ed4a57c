"""The shop's pipeline with a Parquet target."""

from __future__ import annotations

from pathlib import Path

from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop


def parquet_shop(folder: Path, landing: str = "format: parquet") -> Pipeline:
    """Return the shop with a Parquet target only; `landing` is YAML."""
    yaml = YAML.replace("shop_lake\n", "shop_lake\n      format: parquet\n").replace(
        "flush_seconds: 30", f"{landing}, flush_seconds: 30"
    )
    write_shop(folder, yaml.replace("      partition_by: [country]\n", "").replace("_current", "_latest"))
    for file in ("totals.sql", "countries.sql"):
        path = folder / "shop" / file
        path.write_text(path.read_text().replace("_current", "_latest"))
    return load("shop", folder)
