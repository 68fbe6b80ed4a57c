"""Commands of the local stack and of Dagster on it."""
