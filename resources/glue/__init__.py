"""The Glue Data Catalog: the Dagster resource and its table definitions."""
