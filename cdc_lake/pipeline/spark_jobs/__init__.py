"""Run Spark jobs for assets and checks: with metadata of their runs, and small landings without Spark."""
