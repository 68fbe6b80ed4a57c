"""dlt as a process with its own packages."""
