"""The PySpark programs: `run(spark, spec) -> report`, the same on a laptop and on EMR.

Here: what needs Spark. Not here: Dagster, and what the contract can say in plain Python.
"""
