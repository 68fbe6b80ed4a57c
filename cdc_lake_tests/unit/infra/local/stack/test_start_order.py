"""The order of starting and stopping."""

from __future__ import annotations

from threading import Event, Lock

import pytest

from cdc_lake_tests.unit.infra.local.fake_component import FakeComponent
from infra.errors import StackError
from infra.local.stack.start_order import dependents, run_in_order, start_dependencies, started_after, with_dependencies

CHAIN = [FakeComponent("a"), FakeComponent("b", ("a",)), FakeComponent("c", ("b",)), FakeComponent("d")]


def test_needs_are_included_in_registry_order() -> None:
    assert [component.name for component in with_dependencies(CHAIN, ["c"])] == ["a", "b", "c"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(StackError, match=r"Cannot start 'x': it is not a component\. Choose from a, b, c, d\."):
        with_dependencies(CHAIN, ["x"])


def test_indirect_dependents_are_found() -> None:
    assert dependents(CHAIN, ["a"]) == {"b", "c"}
    assert dependents(CHAIN, ["d"]) == set()


def test_a_component_that_uses_an_address_is_a_dependent_and_does_not_wait() -> None:
    caller = FakeComponent("e", uses=("d",))
    assert start_dependencies(caller) == ()
    assert dependents([*CHAIN, caller], ["d"]) == {"e"}


def test_a_component_waits_for_others_that_it_does_not_need() -> None:
    later = FakeComponent("e", ("a",), after=("d",))
    assert start_dependencies(later) == ("a", "d")
    components = [*CHAIN, later]
    assert [component.name for component in with_dependencies(components, ["e"])] == ["a", "e"]
    assert started_after(components, ["d"]) == {"e"}
    assert dependents(components, ["d"]) == set()


def test_each_component_waits_for_its_needs() -> None:
    order: list[str] = []
    lock = Lock()

    def work(name: str) -> None:
        with lock:
            order.append(name)

    run_in_order({"c": ["b"], "b": ["a", "not there"], "a": []}, work, Event())
    assert order == ["a", "b", "c"]


def test_nothing_is_started_after_a_failure() -> None:
    started: list[str] = []

    def work(name: str) -> None:
        started.append(name)
        raise StackError(f"{name} is broken")

    stop = Event()
    with pytest.raises(StackError, match="a is broken"):
        run_in_order({"a": [], "b": ["a"]}, work, stop)
    assert started == ["a"]
    assert stop.is_set()


def test_a_cycle_is_an_error() -> None:
    with pytest.raises(StackError, match="Cannot order a, b: each waits for another one of them"):
        run_in_order({"a": ["b"], "b": ["a"], "c": []}, lambda _: None, Event())
