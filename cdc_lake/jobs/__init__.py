"""The PySpark programs: `run(spark, spec) -> report`, the same on a laptop and on EMR."""
