"""A ContractError of an executor is raised again on the driver, from the text of Spark's exception."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException

from cdc_lake.contract.errors import ContractError, ObjectDamagedError
from cdc_lake.jobs.executor_errors import contract_error_in, contract_errors

DAMAGED = "cdc_lake.contract.errors.ObjectDamagedError: raw object a.json is missing: restore it"
# The message of PySpark 3.5.7, shortened.
TRACEBACK = f"""
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "raw_reader.py", line 50, in __call__
    records = list(raw_objects.records(store, item))
{{}}{DAMAGED}
"""
CAUSE = """KeyError: 'a'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
"""
JAVA = """
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
"""


@pytest.mark.parametrize("text", [TRACEBACK.format(""), TRACEBACK.format(CAUSE), TRACEBACK.format("") + JAVA])
def test_a_contract_error_is_found_in_the_text(text: str) -> None:
    found = contract_error_in(text)
    assert type(found) is ObjectDamagedError
    assert found.user_message == "raw object a.json is missing: restore it"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "KeyError: 'a'",
        "cdc_lake.contract.errors.Unheard: of",
        "cdc_lake.contract.errors.annotations: not an error",
        "  said cdc_lake.contract.errors.ObjectDamagedError: in the middle of a line",
    ],
)
def test_other_text_contains_no_contract_error(text: str) -> None:
    assert contract_error_in(text) is None


def test_the_contract_error_has_sparks_error_as_its_cause() -> None:
    spark = PythonException(message=TRACEBACK.format(""))
    with pytest.raises(ObjectDamagedError) as caught, contract_errors():
        raise spark
    assert caught.value.__cause__ is spark


def test_other_errors_are_raised_unchanged() -> None:
    with pytest.raises(PythonException, match="KeyError"), contract_errors():
        raise PythonException(message="KeyError: 'a'")
    with pytest.raises(ContractError, match="own"), contract_errors():
        raise ContractError("own")
