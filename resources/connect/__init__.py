"""Kafka Connect: the Dagster resource for self-managed workers, connector configurations and plugins."""
