"""URLs of pages in the AWS console, for users who are signed in there."""

from __future__ import annotations

from urllib.parse import quote

_DOMAINS = {"cn-": "amazonaws.cn", "us-gov-": "amazonaws-us-gov.com"}


def emr_cluster(region: str, cluster_id: str) -> str:
    """Return the URL of a cluster's page, which lists its steps."""
    return f"{_console(region)}/emr/home?region={region}#/clusterDetails/{quote(cluster_id)}"


def emr_serverless(region: str) -> str:
    """Return the URL of EMR Serverless. A run's own page is in a studio, whose URL is not known in advance."""
    return f"{_console(region)}/emr/home?region={region}#/serverless"


def objects(region: str, uri: str) -> str:
    """Return the URL of the page that lists the S3 objects below a prefix; empty for a URI that is not in S3."""
    if not uri.startswith("s3://"):
        return ""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return f"{_console(region)}/s3/buckets/{bucket}?region={region}&prefix={quote(prefix)}"


def _console(region: str) -> str:
    domain = next((domain for begin, domain in _DOMAINS.items() if region.startswith(begin)), "aws.amazon.com")
    return f"https://console.{domain}"
