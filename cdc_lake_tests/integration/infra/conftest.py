"""Fixtures of the stack's tests, imported from the module that defines them."""

from cdc_lake_tests.integration.infra.engine_probes import engine_clients, filled_stack

__all__ = ["engine_clients", "filled_stack"]
