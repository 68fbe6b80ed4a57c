"""Programs that measure a pipeline from the source to the lake, and the commands around it."""
