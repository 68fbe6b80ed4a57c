"""PySpark jobs: `run(spark, spec) -> report`, the same on a laptop and on EMR."""
