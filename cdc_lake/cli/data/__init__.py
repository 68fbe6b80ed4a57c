"""Commands that show records, raw objects, dead letters and query results."""
