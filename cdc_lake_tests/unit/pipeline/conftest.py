"""The tests of the pipeline work on a made-up shop."""

from cdc_lake_tests.fake_pipeline_fixture import shop

__all__ = ["shop"]
