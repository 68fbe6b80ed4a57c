"""Tests of the apply jobs that need no Spark."""
