"""Spark jobs on EMR: steps of a cluster, runs of EMR Serverless, and one application that keeps running."""
