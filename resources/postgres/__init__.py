"""PostgreSQL: the Dagster resource, and the queries and statements that it runs on a server."""
