"""Ctrl-C where it would leave things half made, and where Python drops it."""

import signal

import pytest

from dls_ik.cli.interrupts import held, remembered


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


class Finalized:
    """Where Python reports what is raised, and goes on."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_that_is_dropped_is_remembered():
    with remembered() as ended:
        assert not ended.is_set()
        Finalized()
        assert ended.is_set()


def test_ctrl_c_that_is_remembered_interrupts_too():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), remembered() as ended:
        signal.raise_signal(signal.SIGINT)
    assert ended.is_set()
    assert signal.getsignal(signal.SIGINT) is before
