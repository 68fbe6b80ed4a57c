"""kill -9 of each component during a demo: after `cdc-lake up`, the resumed demo has the same result."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.pipeline.loading import load
from cdc_lake_tests.e2e.demo_summary import assert_demo_is_complete
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.helpers.command_line import CommandLine
from cdc_lake_tests.pytest_hooks.long_test_sizes import full_only
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from infra.local.stack.attach import load_endpoints
from resources.connect.kafka_connect import KafkaConnect
from resources.errors import ResourceError

SNAPSHOT = "snapshot"
# The component is killed when the step is done, that is in the next step. SNAPSHOT is not a step of the demo: it is
# done when the connector runs and its snapshot begins.
KILLS = (
    ("load", "postgres"),
    (SNAPSHOT, "connect"),
    ("raw", "s3"),
    ("lake", "trino"),
    ("dataset", "aws"),
    ("story shipped", "kafka"),
)


class RunningDemo:
    """A demo that is resumed when a kill ends it, and must not end for any other reason."""

    def __init__(self, cli: CommandLine) -> None:
        self._cli = cli
        self._journal = Path(cli.stack.home.path) / "demo.json"
        self._journal.unlink(missing_ok=True)
        self._process = cli.start("cdc-lake", "demo")
        self._killed = False
        self.resumed = 0

    def reach(self, step: str) -> None:
        """Wait until the step is done."""
        Retrying(retry=retry_if_result(lambda there: not there), stop=stop_after_delay(400), wait=wait_fixed(0.05))(
            self._reached, step
        )

    def kill(self, component: str) -> None:
        """Kill a component, and run `cdc-lake up`."""
        pid = {found.name: found.pid for found in self._cli.stack.status()}[component]
        assert pid is not None, f"{component} did not run"
        os.kill(pid, signal.SIGKILL)
        self._killed = True
        self._cli.run("cdc-lake", "up")

    def wait(self) -> None:
        """Wait for the end of the demo; after a kill it may have failed."""
        code = self._process.wait(timeout=600)
        assert code == 0 or self._killed, f"the demo ended with {code}, and nothing was killed"

    def _reached(self, step: str) -> bool:
        if step == SNAPSHOT:
            done = self._connector_runs()
        else:
            done = self._journal.exists() and step in json.loads(self._journal.read_text())
        if not done and self._process.poll() is not None:
            assert self._killed, f"the demo ended with {self._process.returncode} before {step}, and nothing was killed"
            self._process = self._cli.start("cdc-lake", "demo", "--resume")
            self._killed = False
            self.resumed += 1
        return done

    def _connector_runs(self) -> bool:
        at = load_endpoints(Path(self._cli.stack.home.path))
        user, password = at.connect_login
        try:
            status = KafkaConnect(url=at.connect_url, user=user, password=password).status(load("northwind").connector)
        except ResourceError:
            return False  # the worker is restarting
        return status is not None and status.is_running()


@full_only
@pytest.mark.timeout(1500)
def test_a_demo_resumes_after_a_kill_of_each_component(stack: NorthwindStack, count_trials: CountTrials) -> None:
    cli = stack.cli
    demo = RunningDemo(cli)
    for step, component in KILLS:
        demo.reach(step)
        demo.kill(component)
    demo.wait()
    assert_demo_is_complete(json.loads(cli.run("cdc-lake", "demo", "--resume", "--json").stdout))
    count_trials("components killed in the middle of a demo", len(KILLS))
    assert demo.resumed > 0, "no kill ended the demo, so its resumption was not tested"
