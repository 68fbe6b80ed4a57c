"""A setup that is told to end while its engines run: it raises, so that they are ended in order."""

from __future__ import annotations

import signal

import pytest

from infra.local.artifacts.stack_classes import _ended_in_order


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_as_ctrl_c_does(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as ended, _ended_in_order():
        signal.raise_signal(number)
    assert ended.value.code == 128 + number
    assert signal.getsignal(number) is before
