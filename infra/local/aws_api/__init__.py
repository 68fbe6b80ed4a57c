"""The local AWS API: Glue and Athena on one port, for boto3, PyAthena and Trino.

glue/ has moto's Glue catalog and writes each change to disk before it is acknowledged; athena/ runs queries on Trino.
Both use the server (server.py), the signatures of requests (signatures.py) and the errors (errors.py). S3 is not served
here: the stack has an S3 server. The other AWS services of the aws profile are served by tests only
(cdc_lake_tests/aws_api), with the same server.

Start it with `python -m infra.local.aws_api`; it imports nothing of the pipeline.
"""
