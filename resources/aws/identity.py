"""Who the AWS credentials of this process are, as a Dagster resource: boto3 `sts`."""

from __future__ import annotations

from dataclasses import dataclass

from resources.aws.client import AwsResource


@dataclass(frozen=True)
class Identity:
    """A user, or a role that somebody took, and the account."""

    account: str
    arn: str


class Sts(AwsResource):
    """The token service. Methods raise Unreachable, AccessRefused or AwsRequestFailed."""

    def identity(self) -> Identity:
        """Return whose credentials these are; nobody needs a permission to ask."""
        with self.explained("Asking whose the AWS credentials are (sts get-caller-identity)"):
            told = self.client("sts").get_caller_identity()
        return Identity(account=told["Account"], arn=told["Arn"])
