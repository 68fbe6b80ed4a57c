"""The identity of this process's AWS credentials, as a Dagster resource that calls AWS STS."""

from __future__ import annotations

from dataclasses import dataclass

from resources.aws.aws_resource import AwsResource


@dataclass(frozen=True)
class Identity:
    """The ARN of a user or an assumed role, and the account."""

    account: str
    arn: str


class Sts(AwsResource):
    """AWS STS. Methods raise Unreachable, AccessRefused or AwsRequestFailed.

    Usage:

        account = Sts(region="eu-west-1").identity().account
    """

    def identity(self) -> Identity:
        """Return the identity of the credentials. The call needs no IAM permission."""
        with self.translate_errors("read the identity of the AWS credentials (sts get-caller-identity)"):
            found = self.client("sts").get_caller_identity()
        return Identity(account=found["Account"], arn=found["Arn"])
