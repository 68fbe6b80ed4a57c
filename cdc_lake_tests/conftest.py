"""What all tests share: the closing count of what was tried."""

from cdc_lake_tests.tried import pytest_configure, pytest_terminal_summary, tried

__all__ = ["pytest_configure", "pytest_terminal_summary", "tried"]
