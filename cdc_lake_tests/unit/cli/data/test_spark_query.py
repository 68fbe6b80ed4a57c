"""Which queries Spark answers, in the local profile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from cdc_lake.cli.data import spark_query
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.store import S3Location


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


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(ContractError, match=r"^Cannot parse the SQL at line 2, near '\('\. Correct the statement"):
        spark_query._parsed("SELECT *\nFROM (")


class JavaError(Py4JJavaError):  # type: ignore[misc]
    """An error of the JVM, as py4j raises it."""

    def __init__(self, message: str | None) -> None:
        self.java_exception = SimpleNamespace(
            getMessage=lambda: message, toString=lambda: "java.lang.StackOverflowError"
        )

    def __str__(self) -> str:
        return "An error occurred while calling o80.collectToPython."


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (
            AnalysisException("\n[TABLE_OR_VIEW_NOT_FOUND] There is no x. SQLSTATE: 42P01;\n'Project"),
            "[TABLE_OR_VIEW_NOT_FOUND] There is no x. SQLSTATE: 42P01",
        ),
        (JavaError("Job aborted due to stage failure.\n\tat org.apache"), "Job aborted due to stage failure"),
        (JavaError(None), "java.lang.StackOverflowError"),
    ],
    ids=["spark", "java", "no_message"],
)
def test_an_error_of_spark_is_reported_with_its_own_message(error: Exception, cause: str) -> None:
    def query() -> None:
        raise error

    with pytest.raises(ContractError) as caught:
        spark_query.result(query, S3Location("shop"), (), None, 0.0)  # type: ignore[arg-type]
    assert caught.value.user_message.startswith(f"Cannot run the query on Spark: {cause}. Correct the statement if ")
