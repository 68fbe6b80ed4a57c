"""Ports of stacks: kept, moved or fixed, and never shared."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from infra.errors import PortTaken, StackError
from infra.local.stack.ports import PREFERRED, PortBook, is_free
from infra.local.stack.stack_state import StateFile


@pytest.fixture
def used_port() -> Iterator[int]:
    """A port that this process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PortBook:
    """A port book with preferred ports that no stack of this machine uses."""
    monkeypatch.setattr("infra.local.stack.ports.PREFERRED", {"postgres": 27432, "kafka": 27433})
    return PortBook(tmp_path / "cache")


def choose(
    book: PortBook, home: Path, saved: dict[str, int] | None = None, ours: tuple[str, ...] = ()
) -> tuple[dict[str, int], list[str]]:
    """Choose ports for postgres and kafka; return them and the messages."""
    home.mkdir(exist_ok=True)
    messages: list[str] = []
    state = StateFile(home / "stack.json")
    return book.choose(home, ("postgres", "kafka"), saved or {}, ours, messages.append, state.save_ports), messages


def test_preferred_ports_are_used_first(book: PortBook, tmp_path: Path) -> None:
    chosen, messages = choose(book, tmp_path / "a")
    assert chosen == {"postgres": 27432, "kafka": 27433}
    assert messages == []


def test_a_second_home_gets_other_ports_while_the_first_is_down(book: PortBook, tmp_path: Path) -> None:
    first, _ = choose(book, tmp_path / "a")
    second, messages = choose(book, tmp_path / "b")
    assert not set(first.values()) & set(second.values())
    assert any("CDC_LAKE_PORT_POSTGRES" in message for message in messages)
    assert choose(book, tmp_path / "a", first)[0] == first


@pytest.mark.usefixtures("book")
def test_homes_that_choose_at_the_same_time_get_different_ports(tmp_path: Path) -> None:
    """Each choice is stored in its home before the next one begins."""
    homes = [tmp_path / name for name in "abcdef"]
    together = Barrier(len(homes))

    def choose_in(home: Path) -> set[int]:
        home.mkdir()
        state = StateFile(home / "stack.json")

        def save_slowly(ports: dict[str, int]) -> None:
            time.sleep(0.01)
            state.save_ports(ports)

        together.wait(10)
        book = PortBook(tmp_path / "cache")
        return set(book.choose(home, ("postgres", "kafka"), {}, (), lambda _: None, save_slowly).values())

    with ThreadPoolExecutor(len(homes)) as threads:
        chosen = list(threads.map(choose_in, homes))
    assert len(set().union(*chosen)) == 2 * len(homes)


def test_ports_of_a_removed_home_are_released(book: PortBook, tmp_path: Path) -> None:
    first, _ = choose(book, tmp_path / "a")
    (tmp_path / "a" / "stack.json").unlink()
    assert choose(book, tmp_path / "b")[0] == first


def test_a_port_in_use_is_replaced_and_reported(book: PortBook, tmp_path: Path, used_port: int) -> None:
    chosen, messages = choose(book, tmp_path / "a", {"postgres": used_port})
    assert chosen["postgres"] != used_port
    assert is_free(chosen["postgres"])
    assert f"port {used_port} is in use" in messages[0]


def test_a_port_held_by_our_own_process_is_kept(book: PortBook, tmp_path: Path, used_port: int) -> None:
    chosen, messages = choose(book, tmp_path / "a", {"postgres": used_port}, ours=("postgres",))
    assert chosen["postgres"] == used_port
    assert messages == []


def test_a_fixed_port_in_use_is_an_error_that_names_the_holder(
    book: PortBook, tmp_path: Path, used_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_LAKE_PORT_POSTGRES", str(used_port))
    by = rf"\(CDC_LAKE_PORT_POSTGRES\) is used by .*pid {os.getpid()}\. End that process, or set CDC_LAKE_PORT_POSTGRES"
    with pytest.raises(PortTaken, match=rf"Cannot start postgres: port {used_port} {by}"):
        choose(book, tmp_path / "a")


def test_fixed_ports_come_from_the_given_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_PORT_KAFKA", "29999")
    book = PortBook(tmp_path / "cache", {})
    assert book.choose(tmp_path / "home", ("kafka",), {}, (), lambda _: None, lambda _: None)["kafka"] != 29999


@pytest.mark.parametrize("text", ["0", "65536", "kafka", "-1"])
def test_an_invalid_fixed_port_is_rejected(
    book: PortBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CDC_LAKE_PORT_KAFKA", text)
    with pytest.raises(StackError, match=f"CDC_LAKE_PORT_KAFKA={text}"):
        choose(book, tmp_path / "a")


def test_the_preferred_ports_differ() -> None:
    assert len(set(PREFERRED.values())) == len(PREFERRED)
