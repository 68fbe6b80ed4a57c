"""Other systems that do the same work on the same store and the same events (README.md: what each guarantees)."""
