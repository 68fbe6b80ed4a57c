"""Polling: from a table or query of PostgreSQL to a Kafka topic, and the reconciliation of deletes."""
