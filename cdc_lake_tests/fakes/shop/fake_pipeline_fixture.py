"""The `shop` fixture: the fake pipeline for unit tests."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.pipeline.operations import verification_steps
from cdc_lake.pipeline.spark_jobs import small_landings
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop, new_shop


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return the shop's pipeline, deployed and running, with its objects in memory."""
    made = new_shop(tmp_path, float(int(time.time())))
    # Assets, jobs and commands all get their store from this method.
    monkeypatch.setattr(S3Location, "store", lambda _self: made.bucket)
    monkeypatch.setattr(verification_steps, "consistent_point", made.point)
    return made.start()


@pytest.fixture
def landings_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Land all batches by the Spark job, however small."""
    monkeypatch.setattr(small_landings, "SMALL_LANDING_OFFSETS", 0)
