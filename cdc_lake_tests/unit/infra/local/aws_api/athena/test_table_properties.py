"""Athena's table properties are translated to Trino's; the codec becomes a session setting."""

from __future__ import annotations

import pytest

from infra.local.aws_api.athena.table_properties import Translated, target, translate
from infra.local.aws_api.errors import AwsError

AS = " AS SELECT 'a)b' AS write_compression"


@pytest.mark.parametrize(
    ("given", "expected", "codec"),
    [
        ("(format = 'PARQUET', write_compression = 'SNAPPY')", "WITH (format = 'PARQUET')", "SNAPPY"),
        ("(write_compression='gzip')", "", "GZIP"),
        (
            "(parquet_compression = 'ZSTD', partitioned_by = ARRAY['a', 'b'], external_location = 's3://x/(y,z)/')",
            "WITH (partitioned_by = ARRAY['a', 'b'], external_location = 's3://x/(y,z)/')",
            "ZSTD",
        ),
        ("(format = 'ORC', orc_compression = 'UNCOMPRESSED')", "WITH (format = 'ORC')", "NONE"),
        ("(format = 'PARQUET')", "WITH (format = 'PARQUET')", None),
    ],
)
def test_the_codec_is_taken_out_of_the_properties(given: str, expected: str, codec: str | None) -> None:
    found = translate(f'CREATE TABLE "db"."t" WITH {given}{AS}')
    clause = f" {expected}" if expected else ""
    assert found == Translated(f'CREATE TABLE "db"."t"{clause}{AS}', codec)


@pytest.mark.parametrize(
    "sql", ["INSERT INTO t SELECT 1", "CREATE TABLE t AS SELECT 1", "CREATE TABLE t WITH (a, b) AS SELECT 1"]
)
def test_other_statements_are_unchanged(sql: str) -> None:
    assert translate(sql) == Translated(sql, None)


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ("write_compression = 'BROTLI'", "Unsupported compression BROTLI"),
        ("write_compression = 'GZIP', parquet_compression = 'GZIP'", "cannot be used together"),
        ("format = 'ORC', parquet_compression = 'GZIP'", "cannot be used with format ORC"),
    ],
)
def test_wrong_properties_are_refused(properties: str, problem: str) -> None:
    with pytest.raises(AwsError, match=problem):
        translate(f"CREATE TABLE t WITH ({properties}){AS}")


def test_the_table_that_a_statement_writes() -> None:
    assert target('INSERT INTO "DB"."t" SELECT * FROM other', None) == "db.t"
    assert target("CREATE TABLE \"t\" WITH (format = 'ORC') AS SELECT * FROM other", "db") == "db.t"
    assert target("INSERT INTO (", "db") is None
