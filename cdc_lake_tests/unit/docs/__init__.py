"""Tests of statements in the documentation about the repository."""
