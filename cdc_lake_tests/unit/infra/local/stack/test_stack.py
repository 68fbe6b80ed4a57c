"""Up, down and status, with small processes as components."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from cdc_lake_tests.unit.infra.local.fake_component import LISTEN, FakeComponent
from infra.errors import PortLost, StackError, StartFailed
from infra.local.stack.component import LOOPBACK, Component, Launch, StackContext
from infra.local.stack.process import find, is_alive, is_ending, spawn
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome
from resources.waiting import until

MakeStack = Callable[..., Stack]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeStack]:
    """Create stacks in one home (or a named one); all are stopped at the end."""
    stacks: list[Stack] = []

    def _make(*components: Component, home: str = "home") -> Stack:
        stacks.append(Stack(StackHome(tmp_path / home), components))
        return stacks[-1]

    yield _make
    for stack in stacks:
        stack.down()


def pids(stack: Stack) -> dict[str, int | None]:
    """Return the pid of each component."""
    return {component.name: component.pid for component in stack.status()}


def test_up_starts_and_down_stops_all_components(make: MakeStack) -> None:
    stack = make(FakeComponent("one"), FakeComponent("two", ("one",)))
    assert {c.state for c in stack.status()} == {"stopped"}
    after = stack.up()
    assert {c.state for c in after} == {"running"}
    assert all(c.rss_bytes and c.port and c.version == "1" for c in after)
    stack.down()
    assert {c.state for c in stack.status()} == {"stopped"}
    assert find(stack.home.path) == []


def test_up_again_changes_nothing(make: MakeStack) -> None:
    component = FakeComponent("one")
    stack = make(component)
    stack.up()
    before = pids(stack)
    stack.up()
    assert pids(stack) == before
    assert component.prepared.count("one") == 1


def test_up_restarts_a_killed_component(make: MakeStack) -> None:
    stack = make(FakeComponent("one"), FakeComponent("two"))
    stack.up()
    before = pids(stack)
    killed = psutil.Process(before["one"])
    killed.kill()
    killed.wait(5)
    assert next(c.state for c in stack.status() if c.name == "one") == "dead"
    stack.up()
    assert pids(stack)["one"] not in {None, before["one"]}
    assert pids(stack)["two"] == before["two"]


def test_an_optional_component_starts_by_name_and_is_then_kept(make: MakeStack) -> None:
    stack = make(FakeComponent("one"), FakeComponent("registry"))
    assert set(pids(stack)) == {c.name for c in stack.up()} == {"one"}
    assert {c.name: c.state for c in stack.up(only=["registry"])} == {"one": "running", "registry": "running"}
    killed = psutil.Process(pids(stack)["registry"])
    killed.kill()
    killed.wait(5)
    assert {c.name: c.state for c in stack.status()} == {"one": "running", "registry": "dead"}
    assert {c.name: c.state for c in stack.up()} == {"one": "running", "registry": "running"}
    stack.down()
    assert set(pids(stack)) == {c.name for c in stack.up()} == {"one"}


def test_ports_are_kept_after_down_and_up(make: MakeStack) -> None:
    stack = make(FakeComponent("one"))
    before = stack.up()[0].port
    stack.down()
    assert stack.up()[0].port == before


def test_two_homes_run_independently(make: MakeStack) -> None:
    first = make(FakeComponent("one"), home="a")
    second = make(FakeComponent("one"), home="b")
    assert first.up()[0].port != second.up()[0].port
    first.down()
    assert second.status()[0].state == "running"


def test_only_starts_the_component_and_its_needs(make: MakeStack) -> None:
    stack = make(FakeComponent("one"), FakeComponent("two", ("one",)), FakeComponent("three"))
    states = {c.name: c.state for c in stack.up(only=["two"])}
    assert states == {"one": "running", "two": "running", "three": "stopped"}
    assert all(c.port for c in stack.status())


def test_a_process_that_ends_during_the_start_shows_its_log(make: MakeStack) -> None:
    stack = make(FakeComponent("one", script="print('no disk left'); raise SystemExit(3)"))
    with pytest.raises(StartFailed, match=r"(?s)one: it ended while it was starting.*one\.log.*no disk left"):
        stack.up()
    assert stack.status()[0].state == "stopped"


def test_a_process_that_does_not_respond_is_ended(make: MakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_START_SECONDS", "1")
    stack = make(FakeComponent("one", script="import time; time.sleep(600)"))
    with pytest.raises(StartFailed, match=r"one: it did not answer within 1 s .*Connection refused.*so it was ended"):
        stack.up()
    assert find(stack.home.path) == []


def test_an_invalid_start_timeout_is_named(make: MakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_START_SECONDS", "soon")
    with pytest.raises(StackError, match="CDC_LAKE_START_SECONDS=soon"):
        make(FakeComponent("one")).up()


def test_a_process_without_a_record_is_replaced(make: MakeStack) -> None:
    """An `up` that was killed right after it started a process leaves such a process."""
    stack = make(FakeComponent("one"))
    stack.home.make()
    argv = (sys.executable, "-c", "import time; time.sleep(600)")
    orphan = spawn(Launch(argv), "one", stack.home.path, stack.home.log("one"))
    stack.up()
    assert not is_alive(orphan)
    assert len(find(stack.home.path)) == 1


@pytest.mark.parametrize("damage", ["", '{"ports": ', "null"])
def test_down_and_up_with_a_damaged_state_file(make: MakeStack, damage: str) -> None:
    stack = make(FakeComponent("one"))
    stack.up()
    stack.home.state_file.write_text(damage)
    stack.up()
    assert len(find(stack.home.path)) == 1
    stack.home.state_file.write_text(damage)
    stack.down()
    assert find(stack.home.path) == []


def test_down_never_touches_a_reused_pid(make: MakeStack, tmp_path: Path) -> None:
    stranger = psutil.Popen([sys.executable, "-c", "import time; time.sleep(600)"], cwd=tmp_path)
    try:
        stack = make(FakeComponent("one"))
        stack.home.make()
        stored_record = {"pid": stranger.pid, "created": stranger.create_time() - 100}
        stack.home.state_file.write_text(json.dumps({"ports": {}, "processes": {"one": stored_record}}))
        assert stack.status()[0].state == "dead"
        stack.down()
        assert is_alive(stranger)
        assert stack.status()[0].state == "stopped"
    finally:
        stranger.kill()
        stranger.wait()


def test_a_changed_port_restarts_dependent_components(make: MakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = FakeComponent("four", uses=("one",))
    stack = make(FakeComponent("one"), FakeComponent("two", ("one",)), FakeComponent("three"), caller)
    stack.up()
    before = pids(stack)
    with socket.create_server((LOOPBACK, 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("CDC_LAKE_PORT_ONE", str(port))
    stack.up()
    after = pids(stack)
    assert next(c.port for c in stack.status() if c.name == "one") == port
    assert {name for name in before if before[name] != after[name]} == {"one", "two", "four"}


@dataclass
class Raced(FakeComponent):
    """A component whose port is taken once between its choice and its use."""

    thief: socket.socket | None = None

    def prepare(self, context: StackContext) -> None:
        super().prepare(context)
        if self.thief is None:
            self.thief = socket.create_server((LOOPBACK, context.ports[self.name]))


WAITS_FOR_ITS_PORT = f"""
try:
    exec({LISTEN!r})
except OSError:
    import time
    time.sleep(600)
"""


@pytest.mark.parametrize("script", [LISTEN, WAITS_FOR_ITS_PORT], ids=["ends", "waits"])
def test_a_port_lost_between_choice_and_use_is_chosen_again(make: MakeStack, script: str) -> None:
    raced = Raced("one", script=script)
    stack = make(raced, FakeComponent("two", ("one",)), FakeComponent("three"))
    after = {c.name: c for c in stack.up()}
    assert raced.thief is not None
    with raced.thief as thief:
        assert after["one"].port != thief.getsockname()[1]
        assert {c.state for c in after.values()} == {"running"}


ENDS_SLOWLY = """
import ctypes, os, platform, signal, socket, sys, threading, time
def serve():
    server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    print("serving", flush=True)
    ended.wait()
    time.sleep(1)
    os._exit(0)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
ended = threading.Event()
threading.Thread(target=serve).start()
signal.sigwait([signal.SIGUSR1])
ended.set()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # exit of this thread alone
"""


def test_a_process_that_is_ending_and_holds_its_port_is_replaced_on_the_same_port(make: MakeStack) -> None:
    """After kill -9, a JVM is a zombie whose threads hold the port until its memory is freed."""
    stack = make(FakeComponent("one", script=ENDS_SLOWLY))
    before = stack.up()[0]
    ending = psutil.Process(before.pid)
    ending.send_signal(signal.SIGUSR1)
    until(lambda: is_ending(ending), bool, seconds=10, what="the process to be ending", pause_seconds=0.01)
    after = stack.up()[0]
    assert (after.port, after.pid == before.pid) == (before.port, False)


@dataclass
class AlwaysRaced(FakeComponent):
    """A component whose port is taken whenever it starts."""

    thieves: list[socket.socket] = field(default_factory=list)

    def prepare(self, context: StackContext) -> None:
        super().prepare(context)
        self.thieves.append(socket.create_server((LOOPBACK, context.ports[self.name])))


def test_a_port_that_is_lost_again_and_again_is_an_error_that_names_the_holder(make: MakeStack) -> None:
    raced = AlwaysRaced("one")
    stack = make(raced)
    with pytest.raises(PortLost, match=rf"Cannot start one: .*pid {os.getpid()} has taken port \d+ since"):
        stack.up()
    for thief in raced.thieves:
        thief.close()
    assert find(stack.home.path) == []


def test_down_without_a_home_does_nothing(make: MakeStack) -> None:
    stack = make(FakeComponent("one"), home="never made")
    stack.down()
    assert not stack.home.path.exists()


def test_down_after_the_home_was_removed(make: MakeStack) -> None:
    stack = make(FakeComponent("one"))
    stack.up()
    shutil.rmtree(stack.home.path)
    stack.down()
    assert find(stack.home.path) == []


def test_down_ends_a_suspended_process(make: MakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.local.stack.starter.STOP_SECONDS", 0.5)
    stack = make(FakeComponent("one"))
    stack.up()
    psutil.Process(pids(stack)["one"]).send_signal(signal.SIGSTOP)
    stack.down()
    assert find(stack.home.path) == []
