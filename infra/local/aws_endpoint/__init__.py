"""The local AWS-API endpoint: Athena, EMR, EMR Serverless, Glue, MSK, MSK Connect, QuickSight, Secrets Manager, STS.

moto's server answers, with two differences: what is in the Glue catalog survives a restart (glue.py,
glue_state.py), and Athena's queries run, on Trino (athena.py and the files around it). Others are our own
(rest_json.py, json_rpc.py, services.py): MSK, which tells of the stack's broker (kafka.py); MSK Connect, with the
stack's worker behind it (kafkaconnect.py); QuickSight, over the same Trino (quicksight.py); EMR and EMR Serverless,
over spark-submit (spark_services.py). Secrets Manager wants requests that are really signed (signature.py), and forgets
its secrets with the process. Calls that these services don't offer here are refused with an AWS error that says so,
instead of being played. S3 is not served here: the stack has an S3 server of its own.

Run it as `python -m infra.local.aws_endpoint`; it imports nothing of the pipeline.
"""
