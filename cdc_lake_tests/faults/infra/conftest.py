"""The stack of the tests of up and down, for kills."""

from cdc_lake_tests.integration.infra.engine_probes import engines, stack

__all__ = ["engines", "stack"]
