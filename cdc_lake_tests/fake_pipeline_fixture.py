"""The fixture of the made-up shop, for every folder of unit tests that wants a pipeline over fakes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.pipeline.operations import verification
from cdc_lake_tests.fake_pipeline import World, world


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The shop's pipeline, deployed and running; its objects are in memory."""
    made = world(tmp_path, float(int(time.time())))
    # The one place where assets, jobs and commands get a store from.
    monkeypatch.setattr(S3Location, "store", lambda _self: made.bucket)
    monkeypatch.setattr(verification, "consistent_point", made.point)
    return made.start()
