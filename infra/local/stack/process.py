"""Starts, finds and ends the stack's processes.

Every process is started in its own session, with its stack and component in its environment (marks). A process
therefore survives the command that started it, and is found even if that command died before it recorded the pid. A
recorded pid is valid only with its start time, because pids are reused. stack.py decides which components to start, and
in which order.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from infra.errors import StackError
from infra.local.stack.component import PRIVATE_FOLDER, Launch
from infra.local.stack.stack_state import ProcessRecord

HOME_MARK = "CDC_LAKE_STACK_HOME"
COMPONENT_MARK = "CDC_LAKE_STACK_COMPONENT"
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "XDG_CACHE_HOME")
"""Variables of the caller that engines inherit, in addition to CDC_LAKE_*. Credentials and JAVA_TOOL_OPTIONS are not
inherited."""
LOG_LIMIT = 32 * 1024 * 1024
GONE = (psutil.NoSuchProcess, psutil.ZombieProcess)


@dataclass(frozen=True)
class Found:
    """A live process of a stack and its component."""

    component: str
    process: psutil.Process
    main: bool
    """True for the process that was spawned; False for a helper (a PostgreSQL worker), which ends with that process."""


def spawn(launch: Launch, component: str, home: Path, log: Path) -> psutil.Popen:
    """Start the process and append its output to `log`. Raises StackError if it cannot be executed."""
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_suffix(".log.1"))
    folder = home / component
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(PRIVATE_FOLDER)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        with os.fdopen(descriptor, "ab") as output:
            account = pwd.getpwnam(launch.user) if launch.user else None
            return psutil.Popen(
                launch.argv,
                cwd=folder,
                env=_environment(launch.env, component, home),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_answer_signals,  # takes no lock and imports nothing: safe with threads
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )
    except OSError as error:
        raise StackError(f"Cannot start {component}: {launch.argv[0]}: {error.strerror or error}.") from error


def _answer_signals() -> None:
    """Restore the default handling of SIGTERM and SIGINT; nohup, a script's `&` and some CI runners ignore them.

    Child processes inherit ignored signals, and a JVM continues to ignore a signal that is ignored at its start: `down`
    would have to wait until it sends SIGKILL.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _environment(extra: Mapping[str, str], component: str, home: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or (name.startswith("CDC_LAKE_") and name != "CDC_LAKE_HOME")
    }
    return {**kept, **extra, HOME_MARK: str(home), COMPONENT_MARK: component}


def record(process: psutil.Process) -> ProcessRecord:
    """Return the record of a process, which distinguishes it from a later one with the same pid."""
    return ProcessRecord(pid=process.pid, created=process.create_time())


def recorded(note: ProcessRecord | None) -> psutil.Process | None:
    """Return the live process of the record, or None if it has ended, even if its pid is in use again."""
    if note is None:
        return None
    try:
        process = psutil.Process(note.pid)
        same = abs(process.create_time() - note.created) < 0.5
    except GONE:
        return None
    return process if same and is_alive(process) else None


def find(home: Path, component: str | None = None) -> list[Found]:
    """Return the live processes of the stack in `home` (of one component, if named), oldest first.

    They are found by the marks in their environment. PostgreSQL's workers overwrite their environment; they are found
    by an empty environment and a working folder inside the stack, a combination that no shell or tool of a user has. A
    worker that has just been forked still has the marks; it is recognized by its parent.
    """
    found = [f for f in _all_found(home) if component is None or f.component == component]
    return sorted(found, key=lambda f: (f.process.create_time(), f.process.pid))


def _all_found(home: Path) -> Iterator[Found]:
    for process in psutil.process_iter():
        try:
            marks = process.environ()
            if marks.get(HOME_MARK) == str(home):
                owner = marks.get(COMPONENT_MARK)
            elif not marks:
                owner = _component_of_folder(home, Path(process.cwd()))
            else:
                continue
            if owner and process.status() != psutil.STATUS_ZOMBIE:
                yield Found(owner, process, main=bool(marks) and not _is_marked(process.parent(), home, owner))
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue  # it has ended, or belongs to another user


def _is_marked(process: psutil.Process | None, home: Path, component: str) -> bool:
    with suppress(*GONE, psutil.AccessDenied):
        marks = process.environ() if process else {}
        return (marks.get(HOME_MARK), marks.get(COMPONENT_MARK)) == (str(home), component)
    return False


def _component_of_folder(home: Path, folder: Path) -> str | None:
    return folder.relative_to(home).parts[0] if folder != home and folder.is_relative_to(home) else None


def end(processes: Iterable[psutil.Process], first: signal.Signals, seconds: float) -> None:
    """End the processes and their groups: send `first`, then SIGKILL to those that are alive after `seconds`.

    Returns when all have ended. Raises StackError if one survives SIGKILL (it hangs in the kernel).
    """
    leaders = list(processes)
    left = leaders + [member for process in leaders for member in _group(process)]
    for process in leaders:
        _signal(process, first)
    left = _wait_gone(left, seconds)
    for process in left:
        _signal(process, signal.SIGKILL)
    left = _wait_gone(left, 10)
    if left:
        raise StackError(f"Cannot end process {left[0].pid}: it survives SIGKILL. Examine it with ps, then try again.")


def is_alive(process: psutil.Process) -> bool:
    """Return whether this process still runs, or has ending threads that still hold its ports.

    A zombie without threads is not alive: its parent may never wait for it.
    """
    with suppress(psutil.TimeoutExpired):
        process.wait(timeout=0)  # reaps it if it is an ended child of this process
    try:
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or is_ending(process))
    except GONE:
        return False


def is_ending(process: psutil.Process) -> bool:
    """Return whether the process is a zombie that has threads, which can still hold its ports."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE and process.num_threads() > 1)
    except GONE:
        return False


def listening(process: psutil.Process) -> set[int]:
    """Return the TCP ports that the process listens on; an empty set if it has ended."""
    with suppress(*GONE):
        found = process.net_connections(kind="tcp")
        return {connection.laddr[1] for connection in found if connection.status == psutil.CONN_LISTEN}
    return set()


def _group(process: psutil.Process) -> list[psutil.Process]:
    """Return the descendants of the process that are in its group; an empty list if it leads no group."""
    with suppress(*GONE, ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            return [child for child in process.children(recursive=True) if _leader(child) == process.pid]
    return []


def _leader(process: psutil.Process) -> int | None:
    with suppress(ProcessLookupError):
        return os.getpgid(process.pid)
    return None


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    if not is_alive(process):
        return
    with suppress(*GONE, ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


def _wait_gone(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return the processes that are still alive after `seconds`."""
    poll = Retrying(
        stop=stop_after_delay(seconds),
        wait=wait_fixed(0.05),
        retry=retry_if_result(bool),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else processes,
    )
    left: list[psutil.Process] = poll(lambda: [p for p in processes if is_alive(p)])
    return left
