"""Runs Spark jobs in this process, on an EMR cluster, or on EMR Serverless."""
