"""Checks with long texts, which the tests of the layout print by `cdc-lake doctor`."""

from __future__ import annotations

from infra.local.doctor import Check

JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/with/a/folder/that/is/named/at/length/and/one-more"
CHECKS = [
    Check("Java 17 (Kafka, Connect, Spark, S3)", "ok", f"17 in {JAVA}"),
    Check(
        "PostgreSQL's user",
        "missing",
        "postgres cannot enter /home/somebody/projects/closed",
        "open it for others to pass through (chmod o+x /home/somebody/projects/closed), or set CDC_LAKE_HOME",
    ),
]
