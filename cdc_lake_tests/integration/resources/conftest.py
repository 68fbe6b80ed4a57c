"""Fixtures of the resources' tests, imported from the modules that define them."""

from cdc_lake_tests.integration.resources.source_side import source, source_engines

__all__ = ["source", "source_engines"]
