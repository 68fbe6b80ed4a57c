"""The engines of the jobs' tests, for those whose store is broken."""

from cdc_lake_tests.integration.jobs.conftest import engines

__all__ = ["engines"]
