"""The stacks of the CDK application: each has the resources of one subject; app.py names them.

Permissions are in infra/aws/iam/, sizes in infra/aws/sizes/. Dagster's resources for the APIs are in resources/.
"""
