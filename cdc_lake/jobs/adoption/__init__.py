"""Adoption: add objects of S3 sink connectors to the manifest chain."""
