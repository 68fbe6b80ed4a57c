"""Program that writes the Hudi tables of test_athena.py.

It runs in its own process, because a Spark session cannot change its S3 endpoint.
Arguments: the S3 endpoint, the folder of jars, the copy-on-write table's s3a:// path. The keys are in the environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

OPTIONS = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "order_id",
    "hoodie.datasource.write.precombine.field": "lsn",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
}
FIRST_COMMIT = """
SELECT * FROM VALUES
  (1, CAST(10.50 AS decimal(6,2)), DATE'1998-05-06', TIMESTAMP'1998-05-06 10:11:12.123456',
   '[{"product_id":1,"quantity":2,"unit_price":3.5}]', false, CAST(1.5 AS double), 10L),
  (2, CAST(-0.05 AS decimal(6,2)), CAST(NULL AS date), CAST(NULL AS timestamp),
   '[{"product_id":2,"quantity":1,"unit_price":9.99},{"product_id":3,"quantity":4,"unit_price":1}]',
   false, CAST('NaN' AS double), 20L),
  (3, CAST(NULL AS decimal(6,2)), DATE'1969-12-31', TIMESTAMP'2024-02-29 23:59:59', NULL, true, NULL, 30L)
AS t(order_id, freight, shipped_date, ordered_at, order_items, __deleted, score, lsn)
"""


def main(endpoint: str, jars: str, path: str) -> None:
    """Write three orders, then a change of the first one, which a merge-on-read table stores in a log file."""
    s3a = "spark.hadoop.fs.s3a."
    settings = {
        "spark.jars": ",".join(str(each) for each in sorted(Path(jars).glob("*.jar"))),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.shuffle.partitions": "2",
        f"{s3a}endpoint": endpoint,
        f"{s3a}path.style.access": "true",
        f"{s3a}access.key": os.environ["S3_ACCESS_KEY"],
        f"{s3a}secret.key": os.environ["S3_SECRET_KEY"],
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    first = spark.sql(FIRST_COMMIT)
    change = first.where("order_id = 1").selectExpr(
        "order_id", "CAST(11.25 AS decimal(6,2)) AS freight", "shipped_date", "ordered_at", "order_items",
        "__deleted", "score", "99L AS lsn",
    )  # fmt: skip
    for kind, place in (("COPY_ON_WRITE", path), ("MERGE_ON_READ", f"{path}_merged")):
        for rows in (first, change):
            writer = rows.write.format("hudi").options(**OPTIONS).option("hoodie.datasource.write.table.type", kind)
            writer.mode("append").save(place)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
