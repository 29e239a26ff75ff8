"""Ctrl-C where it would leave things half made."""

import signal

import pytest

from dls_ik.cli.interrupts import held


def test_ctrl_c_comes_after_what_it_may_not_break():
    done = []

    def work():
        with held():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_nothing_comes_where_nothing_was_pressed():
    before = signal.getsignal(signal.SIGINT)
    with held():
        pass
    assert signal.getsignal(signal.SIGINT) is before
