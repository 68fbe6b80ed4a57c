"""Ports: kept, moved, fixed, and never shared between stacks."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from infra.local.errors import PortTaken, StackError
from infra.local.stack.ports import PREFERRED, PortBook, is_free
from infra.local.stack.stack_state import StateFile


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that this process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PortBook:
    """A book whose preferred ports are ones that this machine's stacks don't use."""
    monkeypatch.setattr("infra.local.stack.ports.PREFERRED", {"postgres": 27432, "kafka": 27433})
    return PortBook(tmp_path / "cache")


def choose(
    book: PortBook, home: Path, saved: dict[str, int] | None = None, ours: tuple[str, ...] = ()
) -> tuple[dict[str, int], list[str]]:
    """The choice for postgres and kafka, and what was said."""
    home.mkdir(exist_ok=True)
    said: list[str] = []
    state = StateFile(home / "stack.json")
    return book.choose(home, ("postgres", "kafka"), saved or {}, ours, said.append, state.save_ports), said


def test_preferred_ports_first(book: PortBook, tmp_path: Path) -> None:
    chosen, said = choose(book, tmp_path / "a")
    assert chosen == {"postgres": 27432, "kafka": 27433}
    assert said == []


def test_a_second_home_gets_others_although_the_first_is_down(book: PortBook, tmp_path: Path) -> None:
    first, _ = choose(book, tmp_path / "a")
    second, said = choose(book, tmp_path / "b")
    assert not set(first.values()) & set(second.values())
    assert any("CDC_LAKE_PORT_POSTGRES" in message for message in said)
    assert choose(book, tmp_path / "a", first)[0] == first


@pytest.mark.usefixtures("book")
def test_homes_that_choose_at_the_same_time_get_ports_of_their_own(tmp_path: Path) -> None:
    """Each choice is in its home's state before the next one begins, however long that takes."""
    homes = [tmp_path / name for name in "abcdef"]
    together = Barrier(len(homes))

    def one(home: Path) -> set[int]:
        home.mkdir()
        state = StateFile(home / "stack.json")

        def keep(ports: dict[str, int]) -> None:
            time.sleep(0.01)
            state.save_ports(ports)

        together.wait(10)
        return set(PortBook(tmp_path / "cache").choose(home, ("postgres", "kafka"), {}, (), str, keep).values())

    with ThreadPoolExecutor(len(homes)) as threads:
        chosen = list(threads.map(one, homes))
    assert len(set().union(*chosen)) == 2 * len(homes)


def test_a_removed_home_gives_its_ports_back(book: PortBook, tmp_path: Path) -> None:
    first, _ = choose(book, tmp_path / "a")
    (tmp_path / "a" / "stack.json").unlink()
    assert choose(book, tmp_path / "b")[0] == first


def test_a_taken_port_is_moved_and_said(book: PortBook, tmp_path: Path, taken: int) -> None:
    chosen, said = choose(book, tmp_path / "a", {"postgres": taken})
    assert chosen["postgres"] != taken
    assert is_free(chosen["postgres"])
    assert f"{taken} for postgres" in said[0]


def test_a_port_held_by_our_own_process_stays(book: PortBook, tmp_path: Path, taken: int) -> None:
    chosen, said = choose(book, tmp_path / "a", {"postgres": taken}, ours=("postgres",))
    assert chosen["postgres"] == taken
    assert said == []


def test_a_fixed_port_that_is_taken_is_an_error_that_names_the_holder(
    book: PortBook, tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_LAKE_PORT_POSTGRES", str(taken))
    with pytest.raises(PortTaken, match=rf"port {taken} for postgres .*pid {os.getpid()}.*CDC_LAKE_PORT_POSTGRES"):
        choose(book, tmp_path / "a")


def test_a_stack_that_nobody_uses_leaves_fixed_ports_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_PORT_KAFKA", "29999")
    book = PortBook(tmp_path / "cache", {})
    assert book.choose(tmp_path / "home", ("kafka",), {}, (), str, lambda _: None)["kafka"] != 29999


@pytest.mark.parametrize("text", ["0", "65536", "kafka", "-1"])
def test_a_fixed_port_that_is_none_is_refused(
    book: PortBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CDC_LAKE_PORT_KAFKA", text)
    with pytest.raises(StackError, match=f"CDC_LAKE_PORT_KAFKA={text}"):
        choose(book, tmp_path / "a")


def test_the_preferred_ports_differ() -> None:
    assert len(set(PREFERRED.values())) == len(PREFERRED)
