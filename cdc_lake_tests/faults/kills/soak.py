"""`make soak MINUTES=20`: 200 changes a second and a random kill every 20 seconds, then `cdc-lake verify`.

The stack is in a new folder, which is removed after success; after a failure the stack is down and the folder is kept.
With --merge-on-read, Northwind has a second target of that type, which is compacted every two minutes: the program
starts itself again with a copy of the project that has this YAML and schedule.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from cdc_lake.pipeline.assets.table_services import COMPACTION
from cdc_lake.pipeline.spec.pipeline import Mode
from cdc_lake.samples.northwind import loader
from cdc_lake_tests.faults.kills import kill_campaign
from cdc_lake_tests.faults.kills.kill_plan import plan
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.faults.writers.writer_process import restore_signal_handlers
from cdc_lake_tests.helpers.command_line import CommandLine
from cdc_lake_tests.helpers.project_copy import PRODUCT, copy_project, replace_text
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome

MERGE_ON_READ = "--merge-on-read"


def main() -> int:
    """Run the soak test. Return 0 if nothing was lost, doubled or left unrepaired."""
    options = _options()
    restore_signal_handlers()
    if options.merge_on_read:
        return _with_merge_on_read([each for each in sys.argv[1:] if each != MERGE_ON_READ])
    folder = Path(tempfile.mkdtemp(prefix="cdc-lake-soak-"))
    folder.chmod(0o711)  # PostgreSQL's user must be able to enter it
    home = folder / "home"
    os.environ["CDC_LAKE_HOME"] = str(home)
    cli = CommandLine(Stack(StackHome(home)), dict(os.environ))
    log(f"soak: {options.minutes:g} minutes, {options.rate:g} changes/s, a kill every {options.every:g} s,")
    log(f"      {options.mode} mode, seed {options.seed} (--seed repeats it), in {folder}")
    try:
        cli.run("cdc-lake", "up")
        stack = NorthwindStack(cli, folder)
        loader.load(stack.login(), None)
        ends = time.monotonic() + options.minutes * 60
        kills = plan(options.seed, options.every, options.mode)

        def enough(killed: int) -> bool:
            return killed >= options.kills and time.monotonic() > ends

        pause_after = options.pause_after or None
        result = kill_campaign.run(stack, options.seed, kills, enough, options.rate, log, pause_after, options.mode)
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


def _with_merge_on_read(arguments: Sequence[str]) -> int:
    """Run the program with a copy of the project in which Northwind has a merge-on-read target too."""
    with tempfile.TemporaryDirectory(prefix="cdc-lake-project-") as name:
        project = Path(name)
        copy_project(project, (*PRODUCT, "cdc_lake_tests"))
        first = "    - { name: lake, database: datalake, table_type: cow, deletes: soft }\n"
        second = "    - { name: merged, database: datalake_merged, table_type: mor }\n"
        replace_text(project / "cdc_lake/defs/northwind/defs.yaml", first, first + second)
        services = project / "cdc_lake/pipeline/assets/table_services.py"
        replace_text(services, f'cron="{COMPACTION.cron}"', 'cron="*/2 * * * *"')
        command = [sys.executable, "-m", "cdc_lake_tests.faults.kills.soak", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(project)}
        return subprocess.run(command, cwd=project, env=environment, check=False).returncode


def log(text: str) -> None:
    """Print a line with the time, unbuffered."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=200.0, help="changes a second")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between kills, on average")
    parser.add_argument("--kills", type=int, default=0, help="the least number of kills")
    parser.add_argument("--pause-after", type=int, default=0, help="kills between two pauses; 0: no pauses")
    parser.add_argument("--mode", choices=get_args(Mode), default="triggered")
    parser.add_argument(MERGE_ON_READ, action="store_true", help="with a second target, in merge-on-read")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
