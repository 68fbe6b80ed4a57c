"""Fixtures of the stack's tests, defined beside what they hand out."""

from cdc_lake_tests.integration.infra.engine_probes import engines, stack

__all__ = ["engines", "stack"]
