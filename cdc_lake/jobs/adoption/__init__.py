"""Adoption: objects that S3 sink connectors wrote enter the manifest chain."""
