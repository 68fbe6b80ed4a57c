"""The AWS services of the aws profile that the local stack does not have, for tests of that profile.

They answer from a stack's systems: MSK Connect (kafkaconnect/) from its Connect worker, EMR and EMR Serverless (emr/)
by spark-submit, QuickSight (quicksight/) from Trino; moto has Secrets Manager, STS and CloudWatch. The server, the
signatures and the JSON protocol are the local AWS API's (infra/local/aws_api), which has Glue and Athena.

served.py serves all of them over a stack. `in_memory.py` of a service serves it over a fake, for unit tests.
"""
