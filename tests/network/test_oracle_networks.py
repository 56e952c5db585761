"""The oracle's networks against what one works out by hand."""

import numpy as np

import oracle_networks as networks

PATH = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]  # 0 - 1 - 2


def up(graphs):
    """The links of each iteration."""
    return [[tuple(link) for link in np.argwhere(np.triu(graph)).tolist()] for graph in graphs]


def coins(*each):
    """Coins of the links 0-1, 1-2 and 0-2, an iteration each."""
    return [[[9, a, c], [a, 9, b], [c, b, 9]] for a, b, c in each]


def test_static():
    assert up(networks.static(PATH, 2)) == [[(0, 1), (1, 2)]] * 2


def test_failures():
    found = networks.failures(PATH, coins((0.2, 0.7, 0.1), (0.5, 0.49, 0.1), (0.9, 0.9, 0.1)), 0.5)
    assert up(found) == [[(0, 1)], [(1, 2)], []], "0-2 is no link however its coin falls"


def test_markov():
    # Up at first below 0.3/(0.1 + 0.3) = 0.75: 0-1 is, 1-2 is not.
    first = coins((0.7, 0.8, 0))[0]
    # 0-1 stays (0.1 is not below 0.1), then fails; 1-2 stays down, then is repaired (0.2 < 0.3).
    found = networks.markov(PATH, first, coins((0.1, 0.3, 0), (0.05, 0.2, 0), (0, 0, 0)), 0.1, 0.3)
    assert up(found) == [[(0, 1)], [(0, 1)], [(1, 2)]]


def test_periodic():
    turn = [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
    assert up(networks.periodic(PATH, 4, turn, 3)) == [[(1, 2)], [], [(0, 1)], [(1, 2)]]


def test_mobility():
    # Device 0 walks right by 0.25 from (0, 0) to (0.5, 0), arrives in iteration 1 and turns up to
    # (0.5, 1); device 1 is at its target (0.5, 0.5) all the time.
    goals = [[(0.5, 0), (0.5, 0.5)]] * 2 + [[(0.5, 1), (0.5, 0.5)]] * 4
    found = networks.mobility([(0, 0), (0.5, 0.5)], goals, 0.25, 0.3)
    # Distances: 0.71, 0.56, 0.5, 0.25, 0
    assert up(found) == [[], [], [], [(0, 1)], [(0, 1)]]


def test_churn():
    links, present = networks.churn(PATH, [[0.5, 0.5, 0.05], [0.5, 0.05, 0.3], [0, 0, 0.1]], 0.1, 0.2)
    assert present.tolist() == [[True] * 3, [True, True, False], [True, False, False]]
    assert up(links) == [[(0, 1), (1, 2)], [(0, 1)], []]


def test_trace():
    lines = [(1, 0, 1), (1, 2, 1), (4, 0, 2)]
    found = up(networks.trace(lines, 3, 6))
    assert found == [[], *[[(0, 1), (1, 2)]] * 3, *[[(0, 2)]] * 2]
