"""Addresses in AWS's console, for people who are signed in there."""

from __future__ import annotations

from urllib.parse import quote

_DOMAINS = {"cn-": "amazonaws.cn", "us-gov-": "amazonaws-us-gov.com"}


def emr_cluster(region: str, cluster_id: str) -> str:
    """The page of a cluster, with its steps."""
    return f"{_console(region)}/emr/home?region={region}#/clusterDetails/{quote(cluster_id)}"


def emr_serverless(region: str) -> str:
    """The page of EMR Serverless: a run is shown by a studio, whose address is not known ahead."""
    return f"{_console(region)}/emr/home?region={region}#/serverless"


def objects(region: str, uri: str) -> str:
    """The page that lists a folder of S3, or the objects whose keys begin so; empty for what is not in S3."""
    if not uri.startswith("s3://"):
        return ""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return f"{_console(region)}/s3/buckets/{bucket}?region={region}&prefix={quote(prefix)}"


def _console(region: str) -> str:
    domain = next((domain for begin, domain in _DOMAINS.items() if region.startswith(begin)), "aws.amazon.com")
    return f"https://console.{domain}"
