"""The local AWS-API endpoint: Glue, Athena, MSK, MSK Connect, Secrets Manager (and STS), on loopback.

moto's server answers, with two differences: what is in the Glue catalog survives a restart (glue.py,
glue_state.py), and Athena's queries run, on Trino (athena.py and the files around it). Two services are
our own (rest_json.py): MSK, which tells of the stack's broker (kafka.py), and MSK Connect, with the stack's
worker behind it (kafkaconnect.py). Secrets Manager wants requests that are really signed (signature.py), and forgets
its secrets with the process. Calls that these services don't offer here are refused with an AWS error that says so,
instead of being played. S3 is not served here: the stack has an S3 server of its own.

Run it as `python -m infra.local.aws_endpoint`; it imports nothing of the pipeline.
"""
