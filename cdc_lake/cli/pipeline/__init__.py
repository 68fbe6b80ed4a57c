"""Commands that work on a whole pipeline."""
