"""EF-HC as Algorithm 1 reads: one Python object a device, loops, float64. Slow on purpose.

This is the yardstick the fast engine is measured against, so it shares nothing with it: no
import, no matrix form in ``simulate``, hand-derived gradients. Symbols follow arXiv 2204.03726;
where the paper is open, the choices of the project's notes on it hold.
"""

from dataclasses import dataclass

import numpy as np

POLICIES = ("efhc", "gt", "zt", "rg", "local", "central", "adaptive")


@dataclass(frozen=True, eq=False)
class Iteration:
    """What one iteration k did, and the state it left."""

    fired: np.ndarray  # (m,) bool, v_i(k): who broadcast (central: who uploaded)
    used_links: np.ndarray  # (m, m) bool, v_ij(k)
    weights: np.ndarray  # (m, n), W(k+1)
    last_broadcast: np.ndarray  # (m, n), W_hat(k+1)
    transmission_time: float
    train_loss: float  # mean over devices of the mini-batch loss at W(k)


# Models ------------------------------------------------------------------------------------------


class Svm:
    """Multi-class hinge, margin 1: (1/C) sum_{c != y} max(0, 1 - s_y + s_c), s = w [x, 1]."""

    def __init__(self, classes):
        self.classes = classes

    def scores(self, w, pixels):
        table = w.reshape(self.classes, len(pixels) + 1)
        return [float(row[:-1] @ pixels + row[-1]) for row in table]

    def loss(self, w, x, y):
        total = 0.0
        for pixels, label in zip(x, y, strict=True):
            scores = self.scores(w, pixels)
            for c in range(self.classes):
                if c != label:
                    total += max(0.0, 1.0 - scores[label] + scores[c]) / self.classes
        return total / len(y)

    def gradient(self, w, x, y):
        total = np.zeros((self.classes, x.shape[1] + 1))
        for pixels, label in zip(x, y, strict=True):
            scores, extended = self.scores(w, pixels), np.append(pixels, 1.0)
            for c in range(self.classes):
                if c != label and 1.0 - scores[label] + scores[c] > 0.0:
                    total[c] += extended / self.classes
                    total[label] -= extended / self.classes
        return total.ravel() / len(y)


class Logistic(Svm):
    """Softmax cross-entropy on the same linear scores: log sum_c exp(s_c) - s_y."""

    def loss(self, w, x, y):
        total = 0.0
        for pixels, label in zip(x, y, strict=True):
            scores = self.scores(w, pixels)
            top = max(scores)
            total += top + np.log(sum(np.exp(s - top) for s in scores)) - scores[label]
        return float(total / len(y))

    def gradient(self, w, x, y):
        total = np.zeros((self.classes, x.shape[1] + 1))
        for pixels, label in zip(x, y, strict=True):
            scores, extended = self.scores(w, pixels), np.append(pixels, 1.0)
            top = max(scores)
            partition = sum(np.exp(s - top) for s in scores)
            for c in range(self.classes):
                probability = np.exp(scores[c] - top) / partition
                total[c] += (probability - (1.0 if c == label else 0.0)) * extended
        return total.ravel() / len(y)


class Quadratic:
    """Class centroids, no bias: 0.5 ||w_y - x||^2."""

    def __init__(self, classes):
        self.classes = classes

    def loss(self, w, x, y):
        table, total = w.reshape(self.classes, x.shape[1]), 0.0
        for pixels, label in zip(x, y, strict=True):
            total += 0.5 * float(np.sum((table[label] - pixels) ** 2))
        return total / len(y)

    def gradient(self, w, x, y):
        table, total = w.reshape(self.classes, x.shape[1]), np.zeros((self.classes, x.shape[1]))
        for pixels, label in zip(x, y, strict=True):
            total[label] += table[label] - pixels
        return total.ravel() / len(y)


MODELS = {"svm": Svm, "logistic": Logistic, "quadratic": Quadratic}


def normalise(images):
    """Raw uint8 images (B, h, w) to rows (B, h*w) in the scale the paper's code uses."""
    return (images.reshape(len(images), -1).astype(np.float64) / 255.0 - 0.1307) / 0.3081


# Pieces of the algorithm, one equation each ------------------------------------------------------


def beta(own_degree, other_degree):
    """Aggregation weight of a link, beta_ij = min(1/(1+d_i), 1/(1+d_j))."""
    return min(1.0 / (1.0 + own_degree), 1.0 / (1.0 + other_degree))


def metropolis_weights(adjacency):
    """beta_ij on every physical link, 0 elsewhere and on the diagonal: (m, m)."""
    m = len(adjacency)
    degree = [sum(bool(adjacency[i][j]) for j in range(m)) for i in range(m)]
    weights = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            if adjacency[i][j]:
                weights[i, j] = beta(degree[i], degree[j])
    return weights


def transition_matrix(adjacency, used_links):
    """P(k): beta_ij on used links, what is left of each row on its diagonal. Not in `simulate`."""
    m, weights = len(adjacency), metropolis_weights(adjacency)
    matrix = np.eye(m)
    for i in range(m):
        for j in range(m):
            if used_links[i][j]:
                matrix[i, j] = weights[i, j]
                matrix[i, i] -= weights[i, j]
    return matrix


def transmission_time(used_links, adjacency, bandwidth, size):
    """(1/m) sum_i (sum_j v_ij / d_i) n / b_i; a device with no link adds 0."""
    m, total = len(adjacency), 0.0
    for i in range(m):
        degree = sum(bool(adjacency[i][j]) for j in range(m))
        used = sum(bool(used_links[i][j]) for j in range(m))
        if degree:
            total += used / degree * size / float(bandwidth[i])
    return total / m


def bandwidths(devices, heterogeneity, mean=5000.0, weak=1000.0):
    """Sorted bandwidths: the nearest whole number to H*m of weak ones, the mean exact.

    A tie (H*m ends in .5) goes up. With no powerful device left the mean cannot be kept.
    """
    weak_count = int(np.floor(heterogeneity * devices + 0.5))
    if weak_count >= devices:
        raise ValueError(f"heterogeneity={heterogeneity}: all {devices} devices would be weak")
    powerful = (mean * devices - weak * weak_count) / (devices - weak_count)
    return np.sort([float(weak)] * weak_count + [powerful] * (devices - weak_count))


# Algorithm 1 -------------------------------------------------------------------------------------


class Device:
    """Device i: its model w_i, its last broadcast w_hat_i, and the neighbours it knows of."""

    def __init__(self, index, w, bandwidth, neighbours):
        self.index = index
        self.w = w.copy()
        self.w_hat = w.copy()
        self.bandwidth = float(bandwidth)
        self.neighbours = set(neighbours)
        self.scale = None  # of the threshold of "adaptive", from the first movement on
        self.received = {}  # sender -> (w_j(k), d_j(k)), this iteration only

    @property
    def degree(self):
        return len(self.neighbours)

    def meet(self, present):
        """Event 1, lines 2-7: keep the list of neighbours; returns those that just appeared."""
        appeared = set(present) - self.neighbours
        self.neighbours = set(present)
        return appeared

    def exchange(self, other):
        """Send (w_i(k), d_i(k)) over one link and receive the same: both ends always do both."""
        other.received[self.index] = (self.w.copy(), self.degree)
        self.received[other.index] = (other.w.copy(), other.degree)

    def drift(self, q):
        """n^(-1/q) ||w_i - w_hat_i||_q."""
        gap = np.abs(self.w - self.w_hat)
        if np.isinf(q):
            return float(np.max(gap))
        return float(len(gap) ** (-1.0 / q) * np.sum(gap**q) ** (1.0 / q))

    def adapts(self, drift, gamma, rate, gain):
        """v_i(k) of "adaptive": a scale that rises with a broadcast and sinks without one."""
        if self.scale is None and drift == 0:
            return False
        fires = self.scale is None or drift >= self.scale * gamma
        if self.scale is None:
            self.scale = drift / gamma
        self.scale *= np.exp(gain * (int(fires) - min(1.0, rate)))
        return fires

    def broadcast(self, devices):
        """Event 2, lines 9-12."""
        for j in sorted(self.neighbours):
            self.exchange(devices[j])
        self.w_hat = self.w.copy()

    def sample_gradient(self, model, x, y):
        """The loss and g_i at w_i(k); called before Event 3 moves w_i."""
        self.gradient = model.gradient(self.w, x, y)
        return model.loss(self.w, x, y)

    def aggregate(self):
        """Event 3: w_i + sum_j beta_ij (w_j - w_i) over the models received."""
        moved = self.w.copy()
        for w_other, degree_other in self.received.values():
            moved += beta(self.degree, degree_other) * (w_other - self.w)
        self.w = moved

    def descend(self, step):
        """Event 4, with the gradient of w_i(k)."""
        self.w = self.w - step * self.gradient


def wants_to_broadcast(drift, threshold, policy, coin, m):
    """v_i(k), by policy; the threshold is r rho_i gamma(k)."""
    if policy in ("efhc", "gt"):
        return drift >= threshold
    if policy == "rg":
        return coin < 1.0 / m
    return policy in ("zt", "central")


def simulate(
    *,
    weights,
    adjacency,
    bandwidth,
    samples,
    images,
    labels,
    model,
    policy,
    r,
    norm_order,
    learning_rate,
    coins=None,
    classes=10,
    training=None,
    threshold=None,
    adaptive=(0.1, 0.3),
):
    """Run K iterations; returns one `Iteration` each.

    weights (m, n) W(0); adjacency (K, m, m) bool; bandwidth (m,); samples (K, m, B) indices into
    images (N, h, w) uint8 and labels (N,); model a name in MODELS or an object with
    loss(w, x (B, h*w), y (B,)) and gradient(...); learning_rate (a, b, c) gives
    alpha(k) = a / (b + k)^c, or is a function of k; threshold, a function of k, gives gamma(k),
    which is alpha(k) otherwise; coins (K, m) in [0, 1), read by "rg" only;
    training (K, m) bool, who takes a gradient step: everybody unless told;
    adaptive (rate, gain), read by "adaptive" only.
    """
    weights, adjacency = np.asarray(weights, dtype=np.float64), np.asarray(adjacency, dtype=bool)
    images, labels = np.asarray(images), np.asarray(labels)
    m, n = weights.shape
    if policy not in POLICIES:
        raise ValueError(f"policy={policy!r}: one of {POLICIES}")
    if policy == "rg" and coins is None:
        raise ValueError("policy='rg' needs coins (K, m)")
    if adjacency.shape != (len(samples), m, m):
        raise ValueError(f"adjacency {adjacency.shape}: should be {(len(samples), m, m)}")
    if (adjacency != adjacency.transpose(0, 2, 1)).any() or adjacency[:, range(m), range(m)].any():
        raise ValueError("adjacency: should be symmetric with a zero diagonal")
    model = MODELS[model](classes) if isinstance(model, str) else model
    if not callable(learning_rate):
        a, b, c = learning_rate

        def learning_rate(k):
            return a / (b + k) ** c

    mean_bandwidth = sum(float(value) for value in bandwidth) / m

    def present(k, i):
        return [j for j in range(m) if adjacency[k, i, j]]

    # A(-1) = A(0): the first neighbours are known from the start, so none of them is new.
    devices = [Device(i, weights[i], bandwidth[i], present(0, i)) for i in range(m)]
    history = []
    for k in range(len(samples)):
        alpha = learning_rate(k)
        gamma = alpha if threshold is None else threshold(k)
        for device in devices:
            device.received = {}

        # Every list is brought up to date first, so that the degrees exchanged are d(k).
        appeared = [device.meet(present(k, device.index)) for device in devices]
        if policy not in ("local", "central"):
            for device in devices:
                for j in sorted(appeared[device.index]):
                    device.exchange(devices[j])

        fired = np.zeros(m, dtype=bool)
        for i, device in enumerate(devices):
            rho = 1.0 / (mean_bandwidth if policy == "gt" else device.bandwidth)
            coin = None if coins is None else coins[k][i]
            drift = device.drift(norm_order)
            if policy == "adaptive":
                rate, gain = adaptive
                share = rate * device.bandwidth / mean_bandwidth
                fired[i] = device.adapts(drift, gamma, share, gain)
            else:
                fired[i] = wants_to_broadcast(drift, r * rho * gamma, policy, coin, m)

        losses = []
        for i, device in enumerate(devices):
            batch = np.asarray(samples[k][i])
            losses.append(device.sample_gradient(model, normalise(images[batch]), labels[batch]))

        used = np.zeros((m, m), dtype=bool)
        if policy == "central":
            average = sum(device.w for device in devices) / m
            for device in devices:
                device.w_hat, device.w = device.w, average.copy()
            seconds = sum(n / device.bandwidth for device in devices) / m
        else:
            for i, device in enumerate(devices):
                if fired[i]:
                    device.broadcast(devices)
            for i, device in enumerate(devices):
                for j in device.received:
                    used[i, j] = True
                device.aggregate()
            seconds = transmission_time(used, adjacency[k], bandwidth, n)
        for i, device in enumerate(devices):
            if training is None or training[k][i]:
                device.descend(alpha)

        history.append(
            Iteration(
                fired=fired,
                used_links=used,
                weights=np.stack([device.w for device in devices]),
                last_broadcast=np.stack([device.w_hat for device in devices]),
                transmission_time=float(seconds),
                train_loss=float(sum(losses) / m),
            )
        )
    return history
