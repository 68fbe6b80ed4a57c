"""`make soak MINUTES=20`: 200 changes a second and a random kill every 20 seconds, then `cdc-lake verify`.

The stack is in a new folder, which is removed after success; after a failure the stack is down and the folder is kept.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from cdc_lake.samples import loader
from cdc_lake_tests.e2e.conftest import CommandLine
from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.faults.kills import kill_campaign
from cdc_lake_tests.faults.kills.kill_plan import plan
from cdc_lake_tests.faults.writers.writer_process import restore_signal_handlers
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome


def main() -> int:
    """Run the soak test. Return 0 if nothing was lost, doubled or left unrepaired."""
    options = _options()
    restore_signal_handlers()
    folder = Path(tempfile.mkdtemp(prefix="cdc-lake-soak-"))
    folder.chmod(0o711)  # PostgreSQL's user must be able to enter it
    home = folder / "home"
    os.environ["CDC_LAKE_HOME"] = str(home)
    cli = CommandLine(Stack(StackHome(home)), dict(os.environ))
    log(f"soak: {options.minutes:g} minutes, {options.rate:g} changes/s, a kill every {options.every:g} s, ")
    log(f"      seed {options.seed} (--seed repeats it), in {folder}")
    try:
        cli.run("cdc-lake", "up")
        bench = Bench(cli, folder)
        loader.load(bench.login(), None)
        ends = time.monotonic() + options.minutes * 60
        kills = plan(options.seed, options.every)
        result = kill_campaign.run(bench, options.seed, kills, lambda _: time.monotonic() > ends, options.rate, log)
        for line in result.lines():
            log(line)
    except Exception as fault:
        log(f"FAILED: {type(fault).__name__}: {fault} (seed {options.seed}: --seed {options.seed} repeats it)")
        log(f"state and logs are kept in {folder}; `CDC_LAKE_HOME={home} cdc-lake up` starts the stack again")
        if not isinstance(fault, AssertionError):
            raise
        return 1
    finally:
        cli.run("cdc-lake", "down")
    shutil.rmtree(folder)
    return 0


def log(text: str) -> None:
    """Print a line with the time, unbuffered."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=200.0, help="changes a second")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between kills, on average")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
