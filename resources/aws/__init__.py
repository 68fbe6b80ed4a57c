"""Shared code of the AWS resources, and small resources: STS, Secrets Manager, CloudWatch metrics, SQS."""
