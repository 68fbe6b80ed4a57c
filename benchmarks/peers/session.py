"""Spark settings for the peers, and a plain session for one of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.peers.table_formats import PeerTable
from infra.artifacts.artifacts import PEERS, jars
from infra.local.stack.endpoints import Endpoints
from resources.spark import properties_files

EXTENSIONS = "spark.sql.extensions"
WAREHOUSE = "spark.sql.catalog.ice.warehouse"
LIBRARIES = ("hadoop-aws-", "aws-java-sdk-", "jmespath-", "ion-java-", "jackson-")
"""The jars with which Spark reads S3."""


def settings(peers: Iterable[type[PeerTable]], folder: str) -> Mapping[str, str]:
    """Return Spark's settings for these peers, whose tables are in `folder` (a URI)."""
    each = [properties_files.read([str(Path(__file__).with_name(f"{peer.format}.properties"))]) for peer in peers]
    extensions = ",".join(dict.fromkeys(found[EXTENSIONS] for found in each))
    return {name: value for found in each for name, value in found.items()} | {
        EXTENSIONS: extensions,
        WAREHOUSE: folder,
    }


def plain_session(peer: type[PeerTable], at: Endpoints, folder: str) -> SparkSession:
    """Start Spark with its default settings for two cores, the jars of one peer, and the stack's object store."""
    os.environ |= {"JAVA_HOME": str(at.java_home), "SPARK_LOCAL_IP": "127.0.0.1"}
    names = (*LIBRARIES, f"{peer.format}-")
    chosen = [
        jar for module in (at.spark_jars, jars(PEERS)) for jar in module.glob("*.jar") if jar.name.startswith(names)
    ]
    builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(map(str, sorted(chosen))))
    s3a = "spark.hadoop.fs.s3a."
    store = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": folder,
        f"{s3a}endpoint": at.s3_endpoint,
        f"{s3a}path.style.access": "true",
        f"{s3a}connection.ssl.enabled": "false",
    }
    for name, value in {**settings([peer], folder), **store}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    hadoop = session.sparkContext._jsc.hadoopConfiguration()  # other users can read settings on the command line
    hadoop.set("fs.s3a.access.key", at.s3_access_key)
    hadoop.set("fs.s3a.secret.key", at.s3_secret_key.get_secret_value())
    return session
