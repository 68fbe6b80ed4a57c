"""Objects of vendors' S3 sink connectors: names, contents, notifications."""
