"""Dagster on Fargate: its services, settings and storage."""
