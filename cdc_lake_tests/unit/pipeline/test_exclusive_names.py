"""Two pipelines must not own the same topic or catalog entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.exclusive_names import require_exclusive
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.spec.target import TargetSpec


def other(**changes: object) -> Pipeline:
    """Return Northwind under another name, with these fields changed."""
    spec = load("northwind").spec
    stream = spec.stream.model_copy(update={"prefix": changes.pop("prefix", spec.stream.prefix)})
    targets = [TargetSpec(name="lake", database=str(changes.pop("database", spec.targets[0].database)))]
    update = {"name": "other", "stream": stream, "targets": targets, **changes}
    return Pipeline(spec.model_copy(update=update), Path("other"))


def test_pipelines_that_share_nothing_are_accepted() -> None:
    require_exclusive([load("northwind"), other(prefix="other", database="elsewhere")])


def test_a_shared_topic_is_rejected() -> None:
    with pytest.raises(
        ContractError, match=r"northwind and other: both would own topic msk\.datalake\.cdc_events.*prefix"
    ):
        require_exclusive([load("northwind"), other(database="elsewhere")])


def test_a_shared_catalog_entry_is_rejected() -> None:
    with pytest.raises(
        ContractError, match=r"both would own catalog entry datalake\.cdc_events_current, .*another targets\.database"
    ):
        require_exclusive([load("northwind"), other(prefix="other")])
