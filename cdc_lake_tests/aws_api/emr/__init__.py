"""EMR and EMR Serverless: one cluster and one application, which exist from the start, as the CDK application's on AWS.

steps.py and serverless.py have the two APIs over runs of jobs (runs.py). spark_submit.py runs a job by PySpark's
spark-submit, in_memory.py by a function.
"""
