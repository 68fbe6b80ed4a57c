"""Tests of cdc_lake.dashboard."""
