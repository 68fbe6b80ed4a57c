"""Apply raw objects to the Hudi table."""
