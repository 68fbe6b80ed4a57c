"""Tests of what the documentation claims about the repository."""
