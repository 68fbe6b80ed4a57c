"""Run the benchmarks one after the other, each as its own process, and write the page.

    python -m benchmarks
    python -m benchmarks --full
    python -m benchmarks upsert_cost --rows 100000

The usual sizes take less than 45 minutes on two cores. The programs that need the demo share a stack on which it runs
once. A program that fails is reported, and the others run. The exit code is 1 if one failed; a goal that is not met is
a result, not a failure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.measures.demo_stack import running_demo
from benchmarks.measures.processes import ROOT
from benchmarks.report import goal_table, page, results
from benchmarks.report.results import FOLDER


@dataclass(frozen=True)
class Program:
    """A program, and its arguments for the usual and the full size.

    If `usual` is None, it runs only with `--full`, or if it is named.
    A program with `on_demo` needs a stack on which the demo has run. It accepts `--home`, and otherwise starts one.
    """

    name: str
    module: str
    usual: str | None
    full: str
    on_demo: bool = False


PROGRAMS = (
    Program("upsert_cost", "write_path.upsert_cost", "--rows 1000000 --batches 2", "--rows 1000000 --batches 10"),
    Program("small_batch", "write_path.small_batch", "--rounds 10", "--rounds 30"),
    Program("profiles", "write_path.profiles", "--rounds 10", "--rounds 40"),
    Program("triggers", "source.triggers", "--rounds 40", "--rounds 200"),
    Program("landing_rate", "write_path.landing_rate", "--records 300000", "--records 1000000"),
    Program("end_to_end", "whole_pipeline.end_to_end", "--rows 100000", "--rows 1000000"),
    Program("table_growth", "write_path.table_growth", "--rows 10000 100000 1000000",
            "--rows 10000 100000 1000000 10000000"),
    Program("batch_cost", "write_path.batch_cost", "--manifests 10 1000 --commits 100 1000 --rounds 3",
            "--manifests 10 1000 10000 --commits 100 1000 2500 --rounds 5"),
    Program("several_tables", "whole_pipeline.several_tables", "--tables 6 --rounds 1", "--tables 1 6 50"),
    Program("poll_cost", "source.poll_cost", "--rows 50000 500000 --changed 1000 10000",
            "--rows 50000 5000000 --changed 100 1000 10000"),
    Program("target_formats", "whole_pipeline.target_formats", "--rows 100000 --rounds 5",
            "--rows 1000000 --rounds 20"),
    # These share a stack: first those that read it, then those that write.
    Program("cold_start", "write_path.cold_start", "--rounds 2", "--rounds 5", on_demo=True),
    Program("start_times", "whole_pipeline.start_times", "--rounds 5", "--rounds 9", on_demo=True),
    Program("nothing_new", "whole_pipeline.nothing_new", "--rounds 2", "--rounds 5", on_demo=True),
    Program("freshness_continuous", "whole_pipeline.freshness", "--continuous --rate 200 --minutes 3",
            "--continuous --rate 200 --minutes 30", on_demo=True),
    Program("freshness_triggered", "whole_pipeline.freshness", "--rate 20 --minutes 3", "--rate 20 --minutes 10",
            on_demo=True),
    Program("sustained", "whole_pipeline.sustained", "--minutes 1", "--minutes 10", on_demo=True),
    Program("hoodie_streamer", "whole_pipeline.hoodie_streamer", None, "--rounds 3 --minutes 10", on_demo=True),
    Program("scale_model", "scale_model", "", "--check"),
)  # fmt: skip


def run(program: Program, arguments: Sequence[str], folder: Path) -> int:
    """Run one program; return its exit code."""
    command = [sys.executable, "-m", f"benchmarks.{program.module}", *arguments, "--results", str(folder)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def with_demo(programs: Sequence[Program]) -> Generator[tuple[Program, Sequence[str]], None, None]:
    """Yield each program with its arguments for the demo's stack, which is started once if several programs need it.

    If the demo fails, each program runs it on a stack of its own, and reports its error.
    """
    need = [program for program in programs if program.on_demo]
    with ExitStack() as stack:
        home: Sequence[str] = ()
        for program in programs:
            if len(need) > 1 and program is need[0]:
                with suppress(subprocess.CalledProcessError):
                    home = ("--home", str(stack.enter_context(running_demo())))
            yield program, home if program.on_demo else ()
            if program in need[-1:]:
                stack.close()


def main() -> int:
    """Run the chosen programs, write the page, and return 1 if a program failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [program.name for program in PROGRAMS]
    parser.add_argument(
        "programs",
        nargs="*",
        metavar="PROGRAM",
        help=f"all by default: {', '.join(names)}; hoodie_streamer only with --full",
    )
    parser.add_argument("--full", action="store_true", help="larger sizes and longer windows, about three hours")
    parser.add_argument("--results", type=Path, default=FOLDER, help="the folder for results and page")
    options, more = parser.parse_known_args()
    if unknown := set(options.programs) - set(names):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if more and len(options.programs) != 1:
        parser.error(f"{more[0]}: further options are passed to a single named benchmark")
    console, failed = Console(stderr=True), []
    sized = [each.name for each in PROGRAMS if options.full or each.usual is not None]
    chosen = [each for each in PROGRAMS if each.name in (options.programs or sized)]
    with closing(with_demo(chosen)) as with_homes:
        for number, (program, home) in enumerate(with_homes, start=1):
            size = program.full if options.full or program.usual is None else program.usual
            arguments = [*size.split(), *more, *home]
            console.print(f"[bold]{number} of {len(chosen)}: {program.name}[/bold] {' '.join(arguments)}")
            started = time.monotonic()
            if code := run(program, arguments, options.results.resolve()):
                failed.append(program.name)
                console.print(f"[red]{program.name} failed with exit code {code}[/red]")
            console.print(f"{program.name} took {time.monotonic() - started:.0f} s")
    found = results.read(options.results)
    console.print(goal_table.terminal(goal_table.ordered(found)))
    console.print(f"page: {page.write(found, options.results)}")
    if failed:
        console.print(f"[red]failed: {', '.join(failed)}[/red]")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
