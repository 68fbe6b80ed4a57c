"""Sample databases: what is in them, the outbox that makes them capturable, and the loader.

Not here: anything that reads a change stream. A sample ends at the commit in PostgreSQL.
"""
