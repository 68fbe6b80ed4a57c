"""What the programs measure with: CPU of processes, memory by component, latencies, and ratios of files."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import NoReturn

import fastavro
import psutil
import pytest

from benchmarks.measures.commit_times import CommitTimes, latencies
from benchmarks.measures.component_usage import PYTHON, Cpu, Memory, memory_of, processes
from benchmarks.measures.processes import running, timed
from benchmarks.measures.repeated_work import repeated
from benchmarks.measures.usage import Usage, measured
from benchmarks.peers.cold_process import COLUMNS
from benchmarks.peers.hoodie_streamer.process import avro_schema
from benchmarks.write_path.upsert_cost import RECENT, UNIFORM, Costs, figures

BUSY = "import time\nwhile time.process_time() < 0.3: pass"
BUSY_AND_WAITING = BUSY + "\nprint(flush=True)\ninput()"


def test_cpu_seconds_contain_those_of_child_processes() -> None:
    def start() -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            [sys.executable, "-c", BUSY_AND_WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert started.stdout.readline() == b"\n"
        return started

    child, used = measured(start)
    child.communicate(b"\n")
    # The kernel counts in ticks of 10 ms, and each of the two readings can be one short.
    assert 0.27 <= used.cpu_seconds < 3
    assert 0.27 <= timed("python", "-c", BUSY).cpu_seconds < 3


def test_cpu_seconds_of_work_do_not_miss_those_of_a_process_that_ends_during_it() -> None:
    parent = "import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
    parent += f"subprocess.Popen([sys.executable, '-c', {BUSY_AND_WAITING!r}]).wait(); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:

        def end_child() -> None:
            started.stdin.write(b"\n")
            started.stdin.flush()
            started.stdout.readline()

        started.stdout.readline()
        _, used = measured(end_child)
        started.communicate(b"\n")
    assert 0 <= used.cpu_seconds < 0.3


def test_the_peak_is_the_sample_with_the_largest_sum() -> None:
    found = Memory([{"kafka": 5, "s3": 1}, {"kafka": 4, "s3": 4}, {"kafka": 1}])
    assert found.peak() == (8, {"kafka": 4, "s3": 4})


def test_the_slope_is_that_of_the_second_half() -> None:
    assert Memory([{"a": 900}, {"a": 0}, {"a": 10}, {"a": 20}]).slope(seconds=3600) == 10
    assert Memory([{"a": 7}]).slope() == 0


def test_a_sample_has_the_processes_of_the_state_folder_and_their_children(tmp_path: Path) -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input(1)'])"
    environment = {**os.environ, "CDC_LAKE_HOME": str(tmp_path)}
    assert processes(tmp_path) == {}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout.read(1) == b"1"
        found = processes(tmp_path)
        sizes = memory_of(found)
        started = [psutil.Process(child.pid), *psutil.Process(child.pid).children()]
        total = sum(each.memory_full_info().pss for each in started)
        child.communicate(b"\n")
    assert found.keys() == sizes.keys() == {PYTHON}
    assert len(started) == 2
    assert set(found[PYTHON]) == set(started)
    assert sizes[PYTHON] == pytest.approx(total, rel=0.2)


def test_cpu_time_is_that_of_the_second_half_with_processes_that_have_ended() -> None:
    cpu = Cpu()
    cpu.add({})
    cpu.add({})
    with subprocess.Popen(
        [sys.executable, "-c", BUSY_AND_WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as busy:
        assert busy.stdout.readline() == b"\n"
        cpu.add({"kafka": [psutil.Process(busy.pid)]})
        busy.communicate(b"\n")
    cpu.add({})
    elapsed = cpu.samples[-1][0] - cpu.samples[1][0]
    assert 0.27 <= cpu.cores()["kafka"] * elapsed < 3
    assert Cpu().cores() == {}


def costs(load: float) -> Costs:
    batches = [(UNIFORM, Usage(2, 3)), (RECENT, Usage(1, 1)), (UNIFORM, Usage(2, 5)), (RECENT, Usage(1, 1))]
    files: list[tuple[str, float, float]] = [(UNIFORM, 8, 20), (RECENT, 2, 4), (UNIFORM, 8, 20), (RECENT, 1, 2)]
    return Costs(Usage(load, load), batches, Usage(1, 7), [Usage(1, 1)], files, touched=[1, 1])


def test_batches_are_summed_with_the_table_services_and_files_divided_by_those_touched() -> None:
    found = {(f.what, f.unit): f.value for f in figures({"cow": costs(30)})}
    assert found["batches, copy-on-write", "CPU s"] == 17
    assert found[f"{UNIFORM}, copy-on-write", "CPU s"] == 4
    assert found["recent keys, copy-on-write", "files rewritten per file touched"] == 2


def test_a_peer_is_compared_with_both_types_unless_it_was_measured_as_both() -> None:
    one = {(f.what, f.value) for f in figures({"delta": costs(40)}) if f.unit == "s" and f.what.startswith("first")}
    assert one == {("first load, copy-on-write", 40), ("first load, merge-on-read", 40)}
    both = {"delta": costs(40), "delta-mor": costs(50)}
    found = {(f.what, f.value) for f in figures(both) if f.unit == "s" and f.what.startswith("first")}
    assert found == {("first load, copy-on-write", 40), ("first load, merge-on-read", 50)}


def test_a_system_that_was_not_measured_to_its_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="cdc-lake was not measured to its end"):
        list(figures({"cow": Costs()}))


def test_the_latency_of_an_object_ends_with_the_first_commit_that_contains_it() -> None:
    written = [(1, 10.0), (2, 11.0), (3, 12.0)]
    # A commit at position 0, such as that of a table service, has applied no object.
    assert latencies(written, [(1, 10.5), (0, 11.5), (3, 14.0)]) == [0.5, 3.0, 2.0]
    with pytest.raises(ValueError, match="no commit contains the object at position 3"):
        latencies(written, [(2, 14.0)])


def test_a_commit_is_dated_when_it_is_first_listed_even_if_it_is_archived_later() -> None:
    instants = {"1": 5}
    times = CommitTimes(lambda: list(instants), lambda instant: instants[instant])
    times.poll()
    assert (times.found, times.reached) == ([], 0)  # it existed at the start
    instants["2"] = 6
    times.poll()
    [(position, at)] = times.found
    assert (position, times.reached) == (6, 6)
    del instants["2"]
    times.poll()
    assert times.found == [(position, at)]


def test_the_error_of_a_repeated_measurement_is_raised_after_the_block() -> None:
    calls = Event()

    def fail() -> NoReturn:
        calls.set()
        raise OSError("store")

    with pytest.raises(OSError, match="store"), repeated(fail, 0.01):
        assert calls.wait(10)


def test_a_program_that_ends_during_the_measurement_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running("python", "-c", "import signal; signal.pause()", log=log) as program:
        assert program.poll() is None
    assert program.poll() is not None
    failing = running("python", "-c", "exit(3)", log=log)
    with (
        pytest.raises(RuntimeError, match=r"`python -c exit\(3\)` ended with 3\. Its output is in"),
        failing as program,
    ):
        program.wait(10)


def test_the_avro_schema_has_all_columns() -> None:
    schema = fastavro.parse_schema(dict(avro_schema(COLUMNS)))
    row = {"order_id": 1, "__lsn": 2**40, "products": None}
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema, row)
    written.seek(0)
    found = fastavro.schemaless_reader(written, schema, schema)
    assert found == {column.split()[0]: None for column in COLUMNS.split(", ")} | row
