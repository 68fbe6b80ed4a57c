"""Sensors, schedules and jobs: what launches runs, and when."""
