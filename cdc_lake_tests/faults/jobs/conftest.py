"""The engines of the jobs' tests, for what is told them in disorder, spoilt or cut off."""

from cdc_lake_tests.faults.jobs.paused_writer import pause_writer
from cdc_lake_tests.integration.jobs.conftest import engines, new_table

__all__ = ["engines", "new_table", "pause_writer"]
