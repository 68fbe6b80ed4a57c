"""PySpark jobs: `run(spark, spec) -> report`, the same on a laptop and on EMR."""

from pathlib import Path

FOLDER = Path(__file__).parent
"""Also contains the properties of their sessions."""
