"""Lake tables: timeline, checkpoint, order of changes, writer leases."""
