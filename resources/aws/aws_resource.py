"""The base class of the resources that call AWS APIs: endpoint, credentials, retries, errors.

A resource for another service is a module in `resources/aws`, or a package in `resources`, whose class extends
AwsResource. `cdc_lake/profile_aws.py` and `profile_local.py` register it under its Dagster resource key.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import boto3
import botocore.session
import dagster as dg
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import create_loader
from pydantic import Field, PrivateAttr

from resources.aws import errors
from resources.aws.errors import AwsRequestFailed

__all__ = ["AwsRequestFailed", "AwsResource"]

_MODELS = create_loader()
"""The loader of boto3's service models. All sessions share it, so that a process parses each model once."""
_MAKING = threading.Lock()
"""Held while a session or client is created: threads may share them but must not create them concurrently."""
_THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})


class AwsResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """An AWS service in one region. By default it uses AWS's endpoint and the environment's credentials."""

    region: str = "us-east-1"
    endpoint_url: str | None = Field(default=None, description="The endpoint's URL; None: AWS's.")
    access_key: str | None = None
    secret_key: str | None = Field(
        default=None, repr=False, description="Bind an EnvVar: a literal is shown in Dagster's UI."
    )
    hint: str = Field(default="", description="A sentence that is appended to connection errors.")
    connect_timeout_seconds: float = Field(default=5.0, gt=0)
    read_timeout_seconds: float = Field(default=60.0, gt=0)
    attempts: int = Field(
        default=6, gt=0, description="The maximum number of attempts of a call that AWS throttles or does not answer."
    )

    _session: boto3.Session | None = PrivateAttr(default=None)
    _clients: dict[tuple[str, str | None, int], Any] = PrivateAttr(default_factory=dict)

    def session(self) -> boto3.Session:
        """Return the boto3 session with the resource's region and credentials; it is created once."""
        with _MAKING:
            return self._made_session()

    def client(self, service: str, endpoint_url: str | None = None, attempts: int | None = None) -> Any:  # noqa: ANN401 - as boto3's
        """Return the boto3 client of a service. Clients are cached, because their creation is slow.

        `endpoint_url` and `attempts` default to the resource's.
        """
        address = endpoint_url or self.endpoint_url
        key = (service, address, attempts or self.attempts)
        with _MAKING:
            if key not in self._clients:
                config = self.client_config(address).merge(
                    Config(
                        retries={"mode": "standard", "total_max_attempts": key[2]},
                        # Only AWS's endpoint has a host name for each bucket.
                        s3={"addressing_style": "path" if address else "auto"},
                    )
                )
                session: Any = self._made_session()
                self._clients[key] = session.client(service, endpoint_url=address, config=config)
            return self._clients[key]

    def _made_session(self) -> boto3.Session:
        if self._session is None:
            # Outside of Dagster, EnvVars are not resolved.
            keys = (self.access_key, self.secret_key)
            access_key, secret_key = (each.get_value() if isinstance(each, dg.EnvVar) else each for each in keys)
            core = botocore.session.get_session()
            core.register_component("data_loader", _MODELS)
            with self.translate_errors("find AWS credentials"):
                self._session = boto3.Session(
                    botocore_session=core,
                    region_name=self.region,
                    aws_access_key_id=access_key,
                    aws_secret_access_key=secret_key,
                )
        return self._session

    def client_config(self, endpoint_url: str | None = None) -> Config:
        """Return a client's settings: timeouts, retries with backoff and jitter, no proxy for local endpoints.

        `endpoint_url` is the client's endpoint if it differs from the resource's.
        """
        host = urlsplit(endpoint_url or self.endpoint_url or "").hostname
        return Config(
            proxies={} if host in _THIS_MACHINE else None,
            connect_timeout=self.connect_timeout_seconds,
            read_timeout=self.read_timeout_seconds,
            retries={"mode": "standard", "total_max_attempts": self.attempts},
        )

    @contextmanager
    def translate_errors(self, action: str) -> Iterator[None]:
        """Raise ResourceErrors for boto3's errors in the block; `action` completes "Cannot …": `read the secret x`.

        Raises:
            Unreachable: the endpoint does not answer.
            AccessRefused: there are no credentials, they are invalid or expired, or they do not allow the operation.
            AwsRequestFailed: the service rejected the request for another reason, or boto3 did not send it.
        """
        try:
            yield
        except (ClientError, Boto3Error, BotoCoreError) as error:
            place = self.endpoint_url or f"AWS in {self.region}"
            raise errors.translated(error, action, place, attempts=self.attempts, hint=self.hint) from error
