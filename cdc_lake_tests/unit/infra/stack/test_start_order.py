"""The order of starting and stopping."""

from __future__ import annotations

from threading import Event, Lock

import pytest

from cdc_lake_tests.unit.infra.fakes import FakeComponent
from infra.local.errors import StackError
from infra.local.stack.start_order import dependents, in_order, with_needs

CHAIN = [FakeComponent("a"), FakeComponent("b", ("a",)), FakeComponent("c", ("b",)), FakeComponent("d")]


def test_needs_come_along_in_the_registrys_order() -> None:
    assert [component.name for component in with_needs(CHAIN, ["c"])] == ["a", "b", "c"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(StackError, match="no component 'x': the components are a, b, c, d"):
        with_needs(CHAIN, ["x"])


def test_dependents_are_found_through_others() -> None:
    assert dependents(CHAIN, ["a"]) == {"b", "c"}
    assert dependents(CHAIN, ["d"]) == set()


def test_each_waits_for_its_needs() -> None:
    order: list[str] = []
    lock = Lock()

    def work(name: str) -> None:
        with lock:
            order.append(name)

    in_order({"c": ["b"], "b": ["a", "not there"], "a": []}, work, Event())
    assert order == ["a", "b", "c"]


def test_nothing_begins_after_a_failure() -> None:
    begun: list[str] = []

    def work(name: str) -> None:
        begun.append(name)
        raise StackError(f"{name} is broken")

    stop = Event()
    with pytest.raises(StackError, match="a is broken"):
        in_order({"a": [], "b": ["a"]}, work, stop)
    assert begun == ["a"]
    assert stop.is_set()
