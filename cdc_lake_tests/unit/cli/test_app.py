"""Errors of the command line: what is printed, and the exit code."""

from __future__ import annotations

import pytest

from cdc_lake.cli import app
from cdc_lake.contract.errors import ContractError


@pytest.mark.parametrize(
    ("debug", "error", "code", "printed"),
    [
        ("0", ContractError("Cannot do it."), 1, "error: Cannot do it.\n"),
        ("0", ValueError("a bug"), 1, "Traceback (most recent call last)"),
        ("1", ContractError("Cannot do it."), 1, "Traceback (most recent call last)"),
    ],
)
@pytest.mark.parametrize("own_code", [None, 2])
def test_an_error_determines_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    debug: str,
    error: Exception,
    code: int,
    printed: str,
    own_code: int | None,
) -> None:
    def fail() -> None:
        if own_code is not None:
            monkeypatch.setattr(error, "exit_code", own_code, raising=False)
        raise error

    monkeypatch.setenv(app.DEBUG_VARIABLE, debug)
    monkeypatch.setattr(app, "app", fail)
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == (own_code or code)
    assert printed in capsys.readouterr().err
