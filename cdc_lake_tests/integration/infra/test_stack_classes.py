"""The engines take what they load from the files that `cdc-lake setup` made."""

from __future__ import annotations

from pathlib import Path

import psutil
from filelock import FileLock

from cdc_lake_tests.local_stack import running_stack, scratch_home
from infra.local.artifacts.stack_classes import scratch, train
from infra.local.components import all_components
from infra.local.components.s3 import S3Component
from infra.local.stack.component import OnJava
from infra.local.stack.process import find
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome

ENGINES = {component.name: component for component in all_components() if isinstance(component, OnJava)}


def test_every_engine_on_java_has_its_file_and_uses_it() -> None:
    assert set(ENGINES) == {"kafka", "connect", "s3", "trino"}
    with scratch_home() as home, running_stack(home, ENGINES):
        for name, engine in ENGINES.items():
            found = engine.class_path().archive()
            assert found.stat().st_size > 5_000_000
            (main,) = (each.process for each in find(home, name) if each.main)
            mapped = {Path(each.path) for each in psutil.Process(main.pid).memory_maps()}
            assert found in mapped, f"{name} did not take it: its class path is another one than the training's"


def test_what_a_setup_left_that_was_killed_is_cleared_away(tmp_path: Path) -> None:
    engine = S3Component()
    with FileLock(scratch().with_name("lock")):  # as setup holds it: the folder is the same for all of this user's
        Stack(StackHome(scratch())).up([engine.name])
        (left,) = find(scratch())
        draft = tmp_path / "draft"
        train({engine.class_path(): draft})
        assert not left.process.is_running()
        assert find(scratch()) == []
        assert not scratch().exists()
    assert draft.stat().st_size > 5_000_000
