"""Applying: from raw objects to rows of the Hudi table."""
