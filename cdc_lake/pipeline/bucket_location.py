"""Get the bucket's location for contract and jobs, after a check that the object store answers."""

import socket
from urllib.parse import urlsplit

from cdc_lake.contract.objects.store import S3Location
from resources.errors import Unreachable
from resources.object_store import ObjectStore

_CONNECT_SECONDS = 5.0


def location(store: ObjectStore) -> S3Location:
    """Return the bucket's location in the form that the contract and the jobs use.

    Opens a TCP connection to the endpoint first, and raises Unreachable with the resource's hint if that fails: boto3
    would retry for half a minute, and raise an error without a hint.
    """
    if store.endpoint_url is not None:
        endpoint = urlsplit(store.endpoint_url)
        try:
            with socket.create_connection((endpoint.hostname or "", endpoint.port or 443), timeout=_CONNECT_SECONDS):
                pass
        except OSError as error:
            raise Unreachable(
                f"Cannot use bucket {store.bucket}: the object store at {store.endpoint_url} does not answer"
                f" ({error}).",
                store.hint,
            ) from error
    return S3Location(store.bucket, store.endpoint_url, store.region, store.access_key, store.secret_key)
