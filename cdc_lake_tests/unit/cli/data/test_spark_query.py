"""Which queries Spark answers, in the local profile."""

from __future__ import annotations

import pytest

from cdc_lake.cli.data import spark_query


@pytest.mark.parametrize(
    ("sql", "by_spark"),
    [
        ("SELECT 1", False),
        ("SELECT * FROM artists", False),
        ("SELECT * FROM moma_mor.artists_rt", True),
        ("SELECT * FROM artists_ro a JOIN ARTISTS_RT b USING (artist_id)", True),
        ("WITH x_rt AS (SELECT 1 AS n) SELECT n FROM x_rt", False),
        ("SELECT 'artists_rt' AS name", False),
        ("SELECT 1 FRM artists_rt (", False),
    ],
)
def test_only_tables_with_log_files_need_spark(monkeypatch: pytest.MonkeyPatch, sql: str, by_spark: bool) -> None:
    monkeypatch.delenv("CDC_LAKE_PROFILE", raising=False)
    assert spark_query.needs_spark(sql) is by_spark
    monkeypatch.setenv("CDC_LAKE_PROFILE", "aws")
    assert spark_query.needs_spark(sql) is False
