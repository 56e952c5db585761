"""The methods of the field in loops over devices, float64. Slow on purpose.

The yardstick of ``efhc_jax.methods``, of local training and of compressors, as ``oracle.py`` is that
of EF-HC, whose pieces it uses: no import from the package, no matrix form of W.

One iteration k: W(k) are the models, A(k) the links, alpha = alpha(k), beta_ij the Metropolis
weights by the degrees in A(k). P(k) has beta_ij on the links in use and the rest of each row on
its diagonal; "central" has 1/m everywhere.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from oracle import MODELS, POLICIES, Device, beta, normalise, wants_to_broadcast

OPTIMIZERS = ("sgd", "momentum", "nesterov", "adam")


@dataclass(frozen=True, eq=False)
class Iteration:
    """What one iteration k did, and the state it left."""

    fired: np.ndarray  # (m,) bool, v_i(k): who broadcast (central: who uploaded)
    used_links: np.ndarray  # (m, m) bool, symmetric: the links that carried a message, either way
    weights: np.ndarray  # (m, n), W(k+1)
    last_broadcast: np.ndarray  # (m, n), W_hat(k+1); X_hat(k+1) of "copies"
    transmission_time: float
    train_loss: float  # mean over devices of the loss at W(k), on the first mini-batch
    messages: int  # from one device over one link in one direction (central: one per upload)
    bits: float  # of all messages together
    memory: dict  # name -> (m, n), what devices remember: see `Learner.memory`


@dataclass(frozen=True)
class Parameters:
    """Parameters of the methods. Compressors that use `ratio` or `levels` have to be told."""

    beta: float = 0.9  # qg_momentum: share of the momentum in a step
    mu: float = 0.1  # qg_momentum: share of the last movement in the momentum
    compressor: str = "none"  # copies: a name in COMPRESSORS
    ratio: float | None = None  # top_k, random_k: share of the entries
    levels: int | None = None  # qsgd: s
    gamma: float = 1.0  # copies: consensus step size


# Compressors: x of one device -> (C(x), bits) ----------------------------------------------------


def entries(ratio, size):
    """Number of entries that a sparse compressor aims at: ceil(ratio n), within 1 and n.

    The factor keeps a product such as 0.07 * 100 = 7.000000000000001 from counting as 8.
    """
    return min(size, max(1, int(np.ceil(ratio * size * (1.0 - 1e-6)))))


def bits_for(count):
    """ceil(log2 count) in whole numbers: the bits that tell `count` things apart."""
    return (int(count) - 1).bit_length()


def none(x, index, parameters, words):
    """C(x) = x, 32n bits."""
    return x.copy(), 32.0 * len(x)


def top_k(x, index, parameters, words):
    """The non-zero entries at least as large as the k-th largest, each with its position."""
    kept, smallest = np.zeros_like(x), sorted(np.abs(x))[-entries(parameters.ratio, len(x))]
    count = 0
    for p, value in enumerate(x):
        if value != 0.0 and abs(value) >= smallest:
            kept[p] = value
            count += 1
    return kept, float(count * (32 + bits_for(len(x))))


def random_k(x, index, parameters, words):
    """The entries with the k smallest words. Positions follow from a shared seed: not sent."""
    drawn = words(np.arange(len(x)))  # the same for all devices
    kept, largest = np.zeros_like(x), sorted(drawn)[entries(parameters.ratio, len(x)) - 1]
    count = 0
    for p, value in enumerate(x):
        if drawn[p] <= largest:
            kept[p] = value
            count += 1
    return kept, 32.0 * count


def sign(x, index, parameters, words):
    """Signs (that of 0 is 0) times ||x||_1 / n: one bit per entry, and the scale."""
    return np.sum(np.abs(x)) / len(x) * np.sign(x), len(x) + 32.0


def qsgd(x, index, parameters, words):
    """||x||_2 sign(x) floor(s |x| / ||x||_2 + u) / s / (1 + min(n/s^2, sqrt(n)/s))."""
    n, s = len(x), parameters.levels
    bits = float(n * bits_for(2 * s + 1) + 32)
    norm = np.sqrt(np.sum(x**2))
    if norm == 0.0:
        return np.zeros_like(x), bits
    drawn = words(np.arange(index * n, (index + 1) * n))  # each device its own
    scale = 1.0 + min(n / s**2, np.sqrt(n) / s)
    sent = np.zeros_like(x)
    for p, value in enumerate(x):
        uniform = (int(drawn[p]) >> 8) * 2.0**-24
        level = np.floor(s * abs(value) / norm + uniform)
        sent[p] = norm * np.sign(value) * level / s / scale
    return sent, bits


COMPRESSORS = {"none": none, "top_k": top_k, "random_k": random_k, "sign": sign, "qsgd": qsgd}


# Local training ----------------------------------------------------------------------------------


class Optimizer:
    """Directions u of one device; the step is -alpha(k) u."""

    def __init__(
        self, size, name, momentum=0.9, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.0, clip=np.inf
    ):
        self.name, self.momentum = name, momentum
        self.b1, self.b2, self.eps = b1, b2, eps
        self.weight_decay, self.clip = weight_decay, clip
        self.velocity = np.zeros(size)
        self.first, self.second = np.zeros(size), np.zeros(size)
        self.steps = 0  # that this device took, all iterations together

    def direction(self, gradient, w):
        """u(g): clipped first, then decayed, then what the name says."""
        self.steps += 1
        norm = np.sqrt(np.sum(gradient**2))
        g = gradient * (self.clip / norm) if norm > self.clip else gradient
        g = g + self.weight_decay * w
        if self.name == "sgd":
            return g
        if self.name in ("momentum", "nesterov"):
            self.velocity = self.momentum * self.velocity + g
            return self.velocity if self.name == "momentum" else self.momentum * self.velocity + g
        self.first = self.b1 * self.first + (1.0 - self.b1) * g
        self.second = self.b2 * self.second + (1.0 - self.b2) * g**2
        first = self.first / (1.0 - self.b1**self.steps)
        second = self.second / (1.0 - self.b2**self.steps)
        return first / (np.sqrt(second) + self.eps)


class Learner(Device):
    """A device with what local training and the methods remember of the iterations before."""

    def __init__(self, index, w, bandwidth, neighbours, optimizer):
        super().__init__(index, w, bandwidth, neighbours)
        self.optimizer = optimizer
        self.appeared = set()  # neighbours that were none in the iteration before
        zero = np.zeros_like(self.w)
        self.delta = zero  # Delta_i(k)
        self.gradient, self.gradient_before = zero, zero  # g_i(k), g_i(k-1)
        self.tracker = zero  # y_i
        self.step, self.step_before = zero, zero  # u_i = alpha g_i, of k and of k-1
        self.w_before = zero  # w_i(k-1)
        self.momentum = zero  # m_i of qg_momentum

    def train(self, model, batches, alpha):
        """Delta_i = w^tau - w_i(k) of the steps w^{t+1} = w^t - alpha u(g(w^t; batch t)); 0 without."""
        w = self.w.copy()
        for x, y in batches:
            w = w - alpha * self.optimizer.direction(model.gradient(w, x, y), w)
        self.delta = w - self.w

    def measure(self, model, batch, trains, keep):
        """g_i at w_i(k). Who does not train keeps the one before, or has none."""
        self.gradient_before = self.gradient
        if trains:
            self.gradient = model.gradient(self.w, *batch)
        elif not keep:
            self.gradient = np.zeros_like(self.w)

    def memory(self, method):
        """What this device remembers after an iteration, by symbol."""
        if method in ("gossip", "copies"):
            kept = {"delta": self.delta}
            if self.optimizer.name in ("momentum", "nesterov"):
                kept["velocity"] = self.optimizer.velocity
            if self.optimizer.name == "adam":
                kept |= {"first": self.optimizer.first, "second": self.optimizer.second}
            return kept
        kept = {
            "tracking": {"Y": self.tracker},
            "d2": {"W_before": self.w_before, "U": self.step_before},
            "extra": {"W_before": self.w_before, "U": self.step_before},
            "qg_momentum": {"M": self.momentum},
        }
        return kept[method] | {"G": self.gradient}


# Methods with P(k): mix(X) is P(k) X, a list with one row per device -------------------------------


def gossip(devices, mix, k, alpha, parameters):
    """W+ = P W + Delta."""
    mixed = mix([device.w for device in devices])
    for device, x in zip(devices, mixed, strict=True):
        device.w = x + device.delta


def tracking(devices, mix, k, alpha, parameters):
    """V = Y- + G - G-; Y = P V, but V at k = 0; W+ = P (W - alpha Y)."""
    trackers = [device.tracker + device.gradient - device.gradient_before for device in devices]
    if k > 0:
        trackers = mix(trackers)
    for device, y in zip(devices, trackers, strict=True):
        device.tracker = y
    mixed = mix([device.w - alpha * device.tracker for device in devices])
    for device, x in zip(devices, mixed, strict=True):
        device.w = x


def d2(devices, mix, k, alpha, parameters):
    """W+ = P (2W - W- - U + U-), but P (W - U) at k = 0; U = alpha G."""
    proposals = []
    for device in devices:
        device.step = alpha * device.gradient
        if k == 0:
            proposals.append(device.w - device.step)
        else:
            moved = 2.0 * device.w - device.w_before - device.step + device.step_before
            proposals.append(moved)
    for device, x in zip(devices, mix(proposals), strict=True):
        device.w_before, device.step_before = device.w, device.step
        device.w = x


def extra(devices, mix, k, alpha, parameters):
    """W+ = W + P W - (W- + P W-)/2 - U + U-, but P W - U at k = 0; P is P(k) in both."""
    mixed = mix([device.w for device in devices])
    mixed_before = mix([device.w_before for device in devices])
    for device, x, x_before in zip(devices, mixed, mixed_before, strict=True):
        device.step = alpha * device.gradient
        if k == 0:
            moved = x - device.step
        else:
            moved = device.w + x - 0.5 * (device.w_before + x_before)
            moved = moved - device.step + device.step_before
        device.w_before, device.step_before = device.w, device.step
        device.w = moved


def qg_momentum(devices, mix, k, alpha, parameters):
    """W+ = P (W - alpha (beta M + G)); M+ = (1 - mu) M + mu (W - W+) / alpha."""
    share, mu = parameters.beta, parameters.mu
    mixed = mix([device.w - alpha * (share * device.momentum + device.gradient) for device in devices])
    for device, x in zip(devices, mixed, strict=True):
        device.momentum = (1.0 - mu) * device.momentum + mu * (device.w - x) / alpha
        device.w = x


MIXED = {
    "gossip": gossip,
    "tracking": tracking,
    "d2": d2,
    "extra": extra,
    "qg_momentum": qg_momentum,
}
METHODS = (*MIXED, "copies")
LOCAL_TRAINING = ("gossip", "copies")  # the others use the plain gradient


def who_fires(devices, drifts, policy, r, gamma, coins, adaptive):
    """v_i(k), (m,); the drift is the distance of what a device has from what it last sent."""
    m = len(devices)
    mean = sum(device.bandwidth for device in devices) / m
    fired = np.zeros(m, dtype=bool)
    for i, device in enumerate(devices):
        if policy == "adaptive":
            rate, gain = adaptive
            fired[i] = device.adapts(drifts[i], gamma, rate * device.bandwidth / mean, gain)
        else:
            rho = 1.0 / (mean if policy == "gt" else device.bandwidth)
            coin = None if coins is None else coins[i]
            fired[i] = wants_to_broadcast(drifts[i], r * rho * gamma, policy, coin, m)
    return fired


def links_in_use(devices, fired, policy, takes_part):
    """Links (i, j), both ways: one end fired or the link is new, and the link takes part."""
    used = set()
    for device in devices:
        i = device.index
        for j in sorted(device.neighbours):
            new = j in device.appeared and policy != "local"
            if (fired[i] or fired[j] or new) and takes_part[i][j]:
                used.add((i, j))
    return used


def average(devices, rows, used, central):
    """x_i + sum_j beta_ij (x_j - x_i) over the links in use; the mean of all for "central"."""
    if central:
        mean = sum(rows) / len(rows)
        return [mean.copy() for _ in rows]
    averaged = []
    for device in devices:
        i = device.index
        x = rows[i].copy()
        for j in sorted(device.neighbours):
            if (i, j) in used:
                x = x + beta(device.degree, devices[j].degree) * (rows[j] - rows[i])
        averaged.append(x)
    return averaged


# Copies ------------------------------------------------------------------------------------------


def copies(devices, fired, policy, parameters, words):
    """W+ = X_half + gamma sum_j beta_ij (x_hat_j+ - x_hat_i+); `w` is x_half on entry.

    x_hat_i+ = x_hat_i + C(x_half_i - x_hat_i) of those that fired. Returns the bits of each message,
    by (sender, receiver): C(...) over the links that were there before, x_hat+ whole over new ones.
    """
    compress, size = COMPRESSORS[parameters.compressor], {}
    for device in devices:
        i = device.index
        if fired[i]:
            message, size[i] = compress(device.w - device.w_hat, i, parameters, words)
            device.w_hat = device.w_hat + message

    sent = {}
    for device in devices:
        i = device.index
        for j in device.neighbours:
            if j in device.appeared and policy != "local":
                sent[i, j] = 32.0 * len(device.w)
            elif fired[i]:
                sent[i, j] = size[i]

    for device in devices:
        pull = np.zeros_like(device.w)
        for j in sorted(device.neighbours):
            pull += beta(device.degree, devices[j].degree) * (devices[j].w_hat - device.w_hat)
        device.w = device.w + parameters.gamma * pull
    return sent


# Runs --------------------------------------------------------------------------------------------


def transmission_time(devices, sent):
    """(1/m) sum_i (sum_j bits_ij / d_i) / (32 b_i); a device without links adds 0."""
    total = 0.0
    for device in devices:
        bits = sum(sent.get((device.index, j), 0.0) for j in device.neighbours)
        if device.degree:
            total += bits / device.degree / (32.0 * device.bandwidth)
    return total / len(devices)


def symmetric(links):
    """Whether all of (K, m, m) are undirected."""
    return not (links != links.transpose(0, 2, 1)).any()


def check(method, policy, optimizer, optimizer_parameters, local_steps, linking, parameters):
    """Refuse what has no meaning."""
    named = [("method", method, METHODS), ("policy", policy, POLICIES)]
    named += [("optimizer", optimizer, OPTIMIZERS)]
    named += [("compressor", parameters.compressor, tuple(COMPRESSORS))]
    for field, value, allowed in named:
        if value not in allowed:
            raise ValueError(f"{field}={value!r}: one of {allowed}")
    if method not in LOCAL_TRAINING:
        if optimizer != "sgd" or optimizer_parameters:
            raise ValueError(f"optimizer={optimizer!r}: {method} uses the plain gradient")
        if local_steps != 1:
            raise ValueError(f"local_steps={local_steps}: {method} takes one gradient step")
    if method == "copies" and policy == "central":
        raise ValueError("policy='central': copies need links")
    if method == "copies" and linking is not None:
        raise ValueError("linking: all links take part with copies")
    needed = {"top_k": "ratio", "random_k": "ratio", "qsgd": "levels"}.get(parameters.compressor)
    if needed and getattr(parameters, needed) is None:
        raise ValueError(f"{needed}: {parameters.compressor} needs it")
    if local_steps < 1:
        raise ValueError(f"local_steps={local_steps}: one or more")


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
    method,
    parameters=None,
    optimizer="sgd",
    optimizer_parameters=None,
    local_steps=1,
    threshold=None,
    coins=None,
    adaptive=(0.1, 0.3),
    classes=10,
    training=None,
    linking=None,
    words=None,
):
    """Run K iterations; returns one `Iteration` each.

    What `oracle.simulate` takes means the same here. samples (K * local_steps, m, B): batch t of
    iteration k is samples[k * local_steps + t]; method a name in METHODS and parameters a dict with
    names of `Parameters`; optimizer a name in OPTIMIZERS and optimizer_parameters a dict with names
    that `Optimizer` takes; training (K, m) bool, who takes gradient steps; linking (K, m, m) bool,
    symmetric, which links take part; words(k, positions) gives 32 random bits for each position,
    read by "random_k" and "qsgd" only.
    """
    weights, adjacency = np.asarray(weights, dtype=np.float64), np.asarray(adjacency, dtype=bool)
    images, labels = np.asarray(images), np.asarray(labels)
    m, n = weights.shape
    steps = len(adjacency)
    parameters, optimizer_parameters = Parameters(**(parameters or {})), optimizer_parameters or {}
    check(method, policy, optimizer, optimizer_parameters, local_steps, linking, parameters)
    linking = adjacency if linking is None else np.asarray(linking, dtype=bool)
    if policy == "rg" and coins is None:
        raise ValueError("policy='rg' needs coins (K, m)")
    if parameters.compressor in ("random_k", "qsgd") and words is None:
        raise ValueError(f"compressor={parameters.compressor!r} needs words(k, positions)")
    if len(samples) != steps * local_steps:
        raise ValueError(f"samples: {len(samples)} batches for {steps} times {local_steps} steps")
    if adjacency.shape != (steps, m, m) or linking.shape != (steps, m, m):
        raise ValueError(f"adjacency, linking: should be {(steps, m, m)}")
    if not symmetric(adjacency) or adjacency[:, range(m), range(m)].any():
        raise ValueError("adjacency: should be symmetric with a zero diagonal")
    if not symmetric(linking):
        raise ValueError("linking: should be symmetric")
    model = MODELS[model](classes) if isinstance(model, str) else model
    if not callable(learning_rate):
        a, b, c = learning_rate

        def learning_rate(k):
            return a / (b + k) ** c

    def present(k, i):
        return [j for j in range(m) if adjacency[k, i, j]]

    devices = [
        Learner(
            i, weights[i], bandwidth[i], present(0, i), Optimizer(n, optimizer, **optimizer_parameters)
        )
        for i in range(m)
    ]
    if method == "copies":
        for device in devices:
            device.w_hat = np.zeros(n)  # nothing is known for free
    history = []
    for k in range(steps):
        alpha = learning_rate(k)
        gamma = alpha if threshold is None else threshold(k)
        for device in devices:
            device.appeared = device.meet(present(k, device.index))

        losses = []
        for i, device in enumerate(devices):
            batches = []
            for t in range(local_steps):
                batch = np.asarray(samples[k * local_steps + t][i])
                batches.append((normalise(images[batch]), labels[batch]))
            losses.append(model.loss(device.w, *batches[0]))
            trains = training is None or training[k][i]
            if method in LOCAL_TRAINING:
                device.train(model, batches if trains else [], alpha)
            else:
                device.measure(model, batches[0], trains, keep=method != "qg_momentum")
        if method == "copies":
            for device in devices:
                device.w = device.w + device.delta  # x_half: the trigger looks at it

        drifts = [device.drift(norm_order) for device in devices]
        coin = None if coins is None else coins[k]
        fired = who_fires(devices, drifts, policy, r, gamma, coin, adaptive)
        if method == "copies":
            drawn = None if words is None else partial(words, k)
            sent = copies(devices, fired, policy, parameters, drawn)
        else:
            central = policy == "central"
            used = set() if central else links_in_use(devices, fired, policy, linking[k])
            for i, device in enumerate(devices):
                if fired[i]:
                    device.w_hat = device.w.copy()
            mix = partial(average, devices, used=used, central=central)
            MIXED[method](devices, mix, k, alpha, parameters)
            size = 64.0 * n if method == "tracking" else 32.0 * n  # W - alpha Y and V, or one row
            sent = dict.fromkeys(used, size)

        used_links = np.zeros((m, m), dtype=bool)
        for i, j in sent:
            used_links[i, j] = used_links[j, i] = True
        messages, bits = len(sent), sum(sent.values())
        seconds = transmission_time(devices, sent)
        if policy == "central":
            messages, bits = m, m * size
            seconds = sum(size / (32.0 * device.bandwidth) for device in devices) / m
        memory = [device.memory(method) for device in devices]
        history.append(
            Iteration(
                fired=fired,
                used_links=used_links,
                weights=np.stack([device.w for device in devices]),
                last_broadcast=np.stack([device.w_hat for device in devices]),
                transmission_time=float(seconds),
                train_loss=float(sum(losses) / m),
                messages=messages,
                bits=float(bits),
                memory={name: np.stack([row[name] for row in memory]) for name in memory[0]},
            )
        )
    return history
