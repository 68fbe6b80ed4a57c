"""Fixtures of the pipeline tests, imported from the modules that define them."""

from cdc_lake_tests.fakes.shop.fake_pipeline_fixture import landings_by_spark, shop
from cdc_lake_tests.unit.pipeline.daemon_fixtures import clock, instance

__all__ = ["clock", "instance", "landings_by_spark", "shop"]
