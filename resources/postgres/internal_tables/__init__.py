"""The tables that a pipeline adds to the source: its heartbeat and its signals to the connector."""
