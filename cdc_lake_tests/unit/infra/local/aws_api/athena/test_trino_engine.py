"""Queries while Trino is down or not yet ready."""

from __future__ import annotations

import pytest

from infra.local.aws_api.athena import trino_engine
from infra.local.aws_api.athena.trino_engine import SYSTEM, Outcome, Progress, QueryFailed, Trino

UNUSED = "http://127.0.0.1:9"


def _run(trino: Trino) -> Outcome:
    return trino.run("SELECT 1", catalog="c", schema=None, progress=Progress(), stopped=lambda: False)


def test_an_unreachable_engine_is_a_system_error() -> None:
    with pytest.raises(QueryFailed, match="did not answer") as failed:
        _run(Trino(UNUSED, "token"))

    assert failed.value.category == SYSTEM
    assert failed.value.retryable


def test_a_query_waits_for_the_first_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Outcome | QueryFailed] = [
        QueryFailed(f"{trino_engine.NO_WORKER}: No nodes available to run query", SYSTEM),
        Outcome([], iter(()), None),
    ]

    def next_answer(*_: object) -> Outcome:
        answer = answers.pop(0)
        if isinstance(answer, QueryFailed):
            raise answer
        return answer

    trino = Trino(UNUSED, "token")
    monkeypatch.setattr(trino, "_run_once", next_answer)

    assert _run(trino).columns == []
    assert not answers


def test_an_address_without_a_port_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:8080"):
        Trino("trino", "token")
