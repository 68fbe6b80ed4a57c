"""Kafka: the Dagster resource, clients, topics and records; clusters on MSK."""
