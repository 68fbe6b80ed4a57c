"""IAM authentication for MSK, for librdkafka (Python) and Java clients."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

import boto3
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError

from resources.errors import AccessRefused

Token = tuple[str, float]
"""A token and its expiry (seconds since 1970)."""
TokenSource = Callable[[str], Token]
"""librdkafka's `oauth_cb`; its argument is `sasl.oauthbearer.config`, which is empty."""

HINT = (
    "A broker gives no reason when it rejects an identity. Check that the identity's policy allows"
    " kafka-cluster:Connect on the cluster, and that the cluster's security group allows port 9098."
)
CLIENT = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER"}
"""librdkafka's settings for IAM, except the token."""
JAVA_CLIENT = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}
"""Settings of Kafka's Java client; the classes are in the `all` jar of software.amazon.msk:aws-msk-iam-auth."""
_TOKEN_SECONDS = 900
_AGENT = "cdc-lake"
_ACTION = "kafka-cluster:Connect"
_CREDENTIALS_HINT = "Give the process a role, or set AWS_PROFILE."


class IamTokens:
    """Creates tokens for the identity that boto3 finds in the environment (implements TokenSource)."""

    def __init__(self, region: str) -> None:
        """`region` is the cluster's region; brokers reject tokens for other regions."""
        self._region = region
        self._session: boto3.Session | None = None

    def __call__(self, _config: str = "") -> Token:
        """Return a new token. Raises AccessRefused if there are no AWS credentials."""
        try:
            found = self._boto().get_credentials()
            frozen = None if found is None else found.get_frozen_credentials()
        except BotoCoreError as error:
            raise AccessRefused(f"Cannot get AWS credentials for MSK: {error}.", _CREDENTIALS_HINT) from error
        if frozen is None:
            raise AccessRefused("Cannot sign in to MSK: there are no AWS credentials.", _CREDENTIALS_HINT)
        request = AWSRequest("GET", f"https://kafka.{self._region}.amazonaws.com/", params={"Action": _ACTION})
        SigV4QueryAuth(frozen, "kafka-cluster", self._region, expires=_TOKEN_SECONDS).add_auth(request)
        signed = str(request.url)
        signed_at = datetime.strptime(parse_qs(urlsplit(signed).query)["X-Amz-Date"][0], "%Y%m%dT%H%M%S%z")
        # Brokers log the user agent; it is not signed.
        token = base64.urlsafe_b64encode(f"{signed}&User-Agent={_AGENT}".encode()).decode().rstrip("=")
        return token, signed_at.timestamp() + _TOKEN_SECONDS

    def _boto(self) -> boto3.Session:
        # One session for all tokens: it caches and renews a role's temporary credentials.
        if self._session is None:
            self._session = boto3.Session(region_name=self._region)
        return self._session
