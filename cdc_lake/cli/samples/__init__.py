"""Commands that load the sample databases, and what the demos print."""
