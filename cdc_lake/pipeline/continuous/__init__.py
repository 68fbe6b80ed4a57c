"""Continuous mode: land and apply the tables of a pipeline in a loop, in one process with one Spark session."""
