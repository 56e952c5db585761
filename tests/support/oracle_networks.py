"""Networks that change, as loops over devices: which links are up in each iteration.

Beside `oracle.py`, and like it on purpose slow and without a word of the engine. Chance comes in as
numbers on [0, 1): `coins[k][i][j]` for the link of i and j, `coins[k][i]` for device i.
"""

import numpy as np


def static(graph, steps):
    return np.array([graph] * steps, dtype=bool)


def failures(graph, coins, up):
    """A link is up where its coin is below the probability."""
    return _each(graph, len(coins), lambda k, i, j: coins[k][i][j] < up)


def markov(graph, first, coins, failure, repair):
    """A link that is up fails, one that is down is repaired; at first it is up as often as ever."""
    m = len(graph)
    up = [[first[i][j] < repair / (failure + repair) for j in range(m)] for i in range(m)]
    found = []
    for k in range(len(coins)):
        found.append([[graph[i][j] and up[i][j] for j in range(m)] for i in range(m)])
        for i in range(m):
            for j in range(m):
                coin = coins[k][i][j]
                up[i][j] = coin >= failure if up[i][j] else coin < repair
    return np.array(found, dtype=bool)


def periodic(graph, steps, turn, period):
    """Every link in its turn."""
    return _each(graph, steps, lambda k, i, j: k % period == turn[i][j])


def mobility(places, waypoints, speed, radius):
    """Devices walk to waypoints[0], and on arrival in iteration k set out for waypoints[k + 1]."""
    places, targets = np.array(places, float), np.array(waypoints[0], float)
    m, found = len(places), []
    for k in range(len(waypoints) - 1):
        found.append(
            [
                [i != j and np.hypot(*(places[i] - places[j])) <= radius for j in range(m)]
                for i in range(m)
            ]
        )
        for i in range(m):
            way = targets[i] - places[i]
            if np.hypot(*way) <= speed:
                places[i], targets[i] = targets[i], waypoints[k + 1][i]
            else:
                places[i] = places[i] + speed * way / np.hypot(*way)
    return np.array(found, dtype=bool)


def churn(graph, coins, leave, come_back):
    """Links whose ends are both there, and who is there (steps, m)."""
    m = len(graph)
    there, links, present = [True] * m, [], []
    for k in range(len(coins)):
        present.append(list(there))
        links.append([[graph[i][j] and there[i] and there[j] for j in range(m)] for i in range(m)])
        for i in range(m):
            there[i] = coins[k][i] >= leave if there[i] else coins[k][i] < come_back
    return np.array(links, dtype=bool), np.array(present, dtype=bool)


def trace(lines, m, steps):
    """(time, device, device) of every link; the graph of k has the largest time no later than it."""
    found = np.zeros((steps, m, m), dtype=bool)
    for k in range(steps):
        newest = max((time for time, _, _ in lines if time <= k), default=None)
        for time, i, j in lines:
            if time == newest:
                found[k, i, j] = found[k, j, i] = True
    return found


def _each(graph, steps, is_up):
    m = len(graph)
    return np.array(
        [[[graph[i][j] and is_up(k, i, j) for j in range(m)] for i in range(m)] for k in range(steps)],
        dtype=bool,
    )
