"""Fixtures of the demo tests."""

from cdc_lake_tests.fakes.shop.fake_pipeline_fixture import shop

__all__ = ["shop"]
