"""Convert exceptions of executors and the JVM to the contract's errors on the driver.

Spark passes the executor's traceback to the driver as text (in a PythonException, or in an exception of the JVM if Hudi
called the executor).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from cdc_lake.contract import errors
from cdc_lake.jobs import store_errors

# The last line of a Python traceback. A user_message is one line.
_RAISED = re.compile(rf"^{re.escape(errors.__name__)}\.(?P<name>\w+): (?P<message>.+)$", re.MULTILINE)


@contextmanager
def contract_errors() -> Iterator[None]:
    """Raise an executor's ContractError with its own class and user_message; convert errors of the object store."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = contract_error_in(str(error)) or store_errors.store_error(str(error))
        if found is None:
            raise
        raise found from error


def contract_error_in(text: str) -> errors.ContractError | None:
    """Return the ContractError at the end of a traceback's text; None for another error."""
    for match in reversed(list(_RAISED.finditer(text))):
        kind = getattr(errors, match["name"], None)
        if isinstance(kind, type) and issubclass(kind, errors.ContractError):
            return kind(match["message"].strip())
    return None
