"""The assets, one module for each stage, and the metadata that they report."""
