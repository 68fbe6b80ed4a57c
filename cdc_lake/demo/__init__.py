"""The demos of the sample pipelines: from an empty database to the dashboard, then changes and their results."""
