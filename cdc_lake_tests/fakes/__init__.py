"""In-memory fakes of the resources; they answer like the real systems and record what is removed or restarted."""
