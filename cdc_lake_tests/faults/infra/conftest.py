"""Fixtures of the tests that kill a stack's components, shared with the integration tests of the stack."""

from cdc_lake_tests.integration.infra.engine_probes import engine_clients, filled_stack

__all__ = ["engine_clients", "filled_stack"]
