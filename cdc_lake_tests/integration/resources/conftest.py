"""Fixtures of the resources' tests, each defined beside what it hands out."""

from cdc_lake_tests.integration.resources.source_side import engines, source

__all__ = ["engines", "source"]
