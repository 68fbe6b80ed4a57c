"""What the resources that call AWS APIs have in common: address, credentials, retries, errors.

Here: the fields of such a resource, the boto3 session and client settings made of them, and AWS's errors
in our words.
Not here: any one service (glue.py, athena.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import boto3
import dagster as dg
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from pydantic import Field, PrivateAttr

from resources.errors import AccessRefused, ResourceError, Unreachable

_THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})
_REFUSED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "UnrecognizedClientException",
    }
)


class AwsRequestFailed(ResourceError):  # noqa: N818 - it says what happened, as all of errors.py do
    """An AWS service refused a request."""

    def __init__(self, message: str, code: str, said: str) -> None:
        """Keep AWS's own error code and message beside ours."""
        super().__init__(message)
        self.code = code
        self.said = said


class AwsResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """An AWS service in one region. Without an endpoint and keys it is AWS's, with the environment's credentials."""

    region: str = "us-east-1"
    endpoint_url: str | None = Field(default=None, description="Another address than AWS's: the local endpoint.")
    access_key: str | None = None
    secret_key: str | None = Field(
        default=None, repr=False, description="Bind an EnvVar: a literal is shown in Dagster's UI."
    )
    hint: str = Field(default="", description="A sentence that is appended to connection errors.")
    connect_timeout_seconds: float = Field(default=5.0, gt=0)
    read_timeout_seconds: float = Field(default=60.0, gt=0)
    attempts: int = Field(
        default=6, gt=0, description="How often a call is tried when AWS throttles or doesn't answer."
    )

    _session: boto3.Session | None = PrivateAttr(default=None)

    def session(self) -> boto3.Session:
        """Return the boto3 session with the resource's region and credentials: one, since it loads API models."""
        if self._session is None:
            # Outside of Dagster nobody has resolved the EnvVars.
            keys = (self.access_key, self.secret_key)
            access_key, secret_key = (each.get_value() if isinstance(each, dg.EnvVar) else each for each in keys)
            self._session = boto3.Session(
                region_name=self.region, aws_access_key_id=access_key, aws_secret_access_key=secret_key
            )
        return self._session

    def client_config(self, endpoint_url: str | None = None) -> Config:
        """Return the settings of a client: timeouts, retries with backoff and jitter, no proxy to this machine.

        `endpoint_url` is the client's, where it is another than the resource's.
        """
        host = urlsplit(endpoint_url or self.endpoint_url or "").hostname
        return Config(
            proxies={} if host in _THIS_MACHINE else None,
            connect_timeout=self.connect_timeout_seconds,
            read_timeout=self.read_timeout_seconds,
            retries={"mode": "standard", "total_max_attempts": self.attempts},
        )

    @contextmanager
    def explained(self, action: str) -> Iterator[None]:
        """Turn botocore's errors in the block into ours; `action` says what was being done, to which object.

        Raises:
            Unreachable: nobody answered at the endpoint.
            AccessRefused: no credentials, wrong ones, or they don't allow it.
            AwsRequestFailed: the service refused for another reason.
        """
        place = self.endpoint_url or f"AWS in {self.region}"
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            said = error.response.get("Error", {}).get("Message", "") or str(error)
            message = f"{action} failed at {place}: {code}: {said}"
            if code in _REFUSED:
                raise AccessRefused(message, "Check the credentials and what they allow.") from error
            raise AwsRequestFailed(message, code, said) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            message = f"{action} failed: there are no AWS credentials."
            raise AccessRefused(message, "Give the resource keys, or set AWS_PROFILE.") from error
        except BotoCoreError as error:
            raise Unreachable(f"{action} failed: {place} does not answer ({error}).", self.hint) from error
