"""Tests of continuous mode."""
