"""Messages, bits and times of one iteration, by hand, on the path 0 - 1 - 2 whose link 1 - 2 is new."""

import jax.numpy as jnp
import numpy as np
import pytest

from efhc_jax.engine.messages import Traffic, both_ways, one_way

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool)
NEW = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]], bool)
NONE = np.zeros((3, 3), bool)
SIZE = 20  # n


def traffic(fired, used, only_new):
    """Devices with bandwidths 1, 2 and 4."""
    given = (jnp.asarray(each) for each in (used, only_new, fired, [1.0, 2.0, 4.0]))
    return Traffic(jnp.asarray(PATH), None, *given)


def check(sent, messages, bits, time, new_link_time):
    assert (int(sent.messages), float(sent.bits)) == (messages, bits)
    assert float(sent.time) == pytest.approx(time)
    assert float(sent.new_link_time) == pytest.approx(new_link_time)


def test_copies_are_sent_one_way_and_whole_over_a_new_link():
    bits = jnp.array([64.0, 96, 320])
    # 0 sends 2 numbers to 1; 1 and 2 send 20 to each other, from 1 over one of two links.
    sent = one_way(traffic([True, False, False], PATH, NEW), SIZE, bits, jnp.asarray(NEW))
    check(sent, 3, 64 + 2 * 640, (2 / 1 + 20 / 2 / 2 + 20 / 4) / 3, (20 / 2 / 2 + 20 / 4) / 3)
    # 1 sends 3 numbers to 0; the new link has an end that fired.
    sent = one_way(traffic([False, True, False], PATH, NONE), SIZE, bits, jnp.asarray(NEW))
    check(sent, 3, 96 + 2 * 640, ((3 + 20) / 2 / 2 + 20 / 4) / 3, 0)
    # Nobody fires, and the policy does not use new links.
    sent = one_way(traffic([False] * 3, NONE, NONE), SIZE, bits, jnp.asarray(NEW))
    check(sent, 0, 0, 0, 0)


def test_whole_models_are_sent_both_ways_or_uploaded():
    # Shares 1, 2/2 and 1 of the links of each device; of new links 0, 1/2 and 1.
    times = (20 / 1 + 20 / 2 + 20 / 4) / 3, (20 / 2 / 2 + 20 / 4) / 3
    sent = both_ways(traffic([True, False, False], PATH, NEW), SIZE, jnp.asarray(False))
    check(sent, 4, 4 * 640, *times)
    sent = both_ways(traffic([False] * 3, NEW, NEW), SIZE, jnp.asarray(False))
    check(sent, 2, 2 * 640, times[1], times[1])
    sent = both_ways(traffic([True] * 3, NONE, NONE), SIZE, jnp.asarray(True))
    check(sent, 3, 3 * 640, times[0], 0)
