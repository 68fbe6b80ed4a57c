"""HoodieStreamer as a process with its own Spark and jars."""
