"""The sensors of a pipeline, which launch its runs."""
