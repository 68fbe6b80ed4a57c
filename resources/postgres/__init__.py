"""PostgreSQL: the Dagster resource, and what it reads and changes in a server."""
