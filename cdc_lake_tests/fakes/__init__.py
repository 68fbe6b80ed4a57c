"""The resources as small fakes in memory: they answer like the systems, and note what is removed or restarted."""
