"""Commands that show topics, raw objects, lake tables and query results, and that show and repair dead letters."""
