"""Two pipelines can't own one thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.exclusive_names import require_apart
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.naming import Flow


def other(**changes: object) -> Flow:
    """Northwind under another name, with some of it changed."""
    spec = load("northwind").spec
    stream = spec.stream.model_copy(update={"prefix": changes.pop("prefix", spec.stream.prefix)})
    return Flow(spec.model_copy(update={"name": "other", "stream": stream, **changes}), Path("other"))


def test_one_that_shares_nothing() -> None:
    require_apart([load("northwind"), other(prefix="other", catalog="elsewhere")])


def test_a_shared_topic() -> None:
    with pytest.raises(
        ContractError, match=r"northwind and other would both own topic msk\.datalake\.cdc_events.*prefix"
    ):
        require_apart([load("northwind"), other(catalog="elsewhere")])


def test_a_shared_table() -> None:
    with pytest.raises(ContractError, match=r"both own catalog entry datalake\.cdc_events, .*another catalog"):
        require_apart([load("northwind"), other(prefix="other")])
