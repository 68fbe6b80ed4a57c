"""The tests of the demo work on a made-up shop."""

from cdc_lake_tests.shop import shop

__all__ = ["shop"]
