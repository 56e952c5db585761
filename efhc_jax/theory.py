"""The paper's assumptions, measured on what a run recorded.

Theorem 1 asks for six assumptions, and the remarks for two things more. Each is a function here that
takes plain arrays or settings and returns a `Finding`. Most assumptions speak of every k ≥ 0: a finding
"holds" or "does not hold" only where that follows from the model, the schedule or a graph that never
changes. Where a run alone speaks, the figure says what it showed, and the verdict that this is all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from efhc_jax.connectivity import (
    broadcast_waits,
    connection_window,
    distinct,
    graphs_of,
    promised_window,
)
from efhc_jax.errors import ExperimentError

Verdict = Literal["holds", "does not hold", "cannot be known from a finite run"]

_UNKNOWN: Verdict = "cannot be known from a finite run"
_ROUNDING = 1e-5  # relative; gradients and weights are computed in 32 bits
_BLOCK_ELEMENTS = 1 << 20  # matrices and images are worked on in blocks of about this many numbers


class Finding(NamedTuple):
    """What is known about one assumption.

    Attributes:
        name: the assumption, with its number in the paper.
        verdict: "holds", "does not hold" or "cannot be known from a finite run".
        figure: the numbers behind the verdict, in words.
        value: the numbers themselves; None where there is none.
    """

    name: str
    verdict: Verdict
    figure: str
    value: float | list[float] | None


class PowerDecay(NamedTuple):
    """α(k) = a / (b + k)^c. Defaults are the paper's."""

    scale: float = 1.0  # a
    offset: float = 1.0  # b
    decay: float = 0.5  # c

    def __str__(self) -> str:
        return f"{self.scale:g}/({self.offset:g}+k)^{self.decay:g}"


class GradientBounds(NamedTuple):
    """No gradient is longer, whatever the weights: L in the 2-norm and L∞ in the largest entry."""

    two: float
    infinity: float


class DecayFit(NamedTuple):
    """A curve as C·k^(−s), with its ends."""

    exponent: float  # s
    scale: float  # C
    first: float
    last: float


def simultaneous_exchange(used_links: ArrayLike) -> Finding:
    """Assumption 1: if i sends to j, then j sends to i in the same iteration; v_ij = v_ji.

    Args:
        used_links: (step, device, device).

    Example:
        >>> simultaneous_exchange([[[0, 1], [0, 0]]]).verdict
        'does not hold'
    """
    links = graphs_of("used_links", used_links)
    one_way = int((links & ~links.swapaxes(-1, -2)).sum())
    figure = f"{one_way:,} of {int(links.sum()):,} transfers were not returned"
    verdict: Verdict = "does not hold" if one_way else "holds"
    return Finding("simultaneous exchange (Assumption 1)", verdict, figure, float(one_way))


def transition_matrices(adjacency: ArrayLike, used_links: ArrayLike) -> np.ndarray:
    """P(k) in 64 bits, of many iterations at once; `mixing.transition_matrix` is that of the engine.

    p_ij = min(1/(1+d_i), 1/(1+d_j))·v_ij for i ≠ j, p_ii = 1 − Σ_{j≠i} p_ij

    Args:
        adjacency: (device, device) or (…, device, device).
        used_links: (…, device, device).

    Example:
        >>> pair = [[0, 1], [1, 0]]
        >>> transition_matrices(pair, [pair]).tolist()
        [[[0.5, 0.5], [0.5, 0.5]]]
    """
    adjacency, used = np.asarray(adjacency, bool), np.asarray(used_links, bool)
    own = 1 / (1 + adjacency.sum(-1))
    weights = np.where(used & adjacency, np.minimum(own[..., :, None], own[..., None, :]), 0.0)
    diagonal = np.arange(used.shape[-1])
    weights[..., diagonal, diagonal] = 0
    weights[..., diagonal, diagonal] = 1 - weights.sum(-1)
    return weights


def transition_weights(adjacency: ArrayLike, used_links: ArrayLike) -> Finding:
    """Assumption 2: P(k) is symmetric and doubly stochastic, its weights in use are at least η > 0.

    η is the smallest p_ii(k), or p_ij(k) of a link in use. For these weights it is never below 1/m,
    in any graph: p_ij ≥ 1/(1 + max d) and p_ii ≥ 1 − d_i/(1 + d_i).

    Args:
        adjacency: (step, device, device), or (device, device) for a graph that never changes.
        used_links: (step, device, device).

    Returns:
        A finding whose value is η over the run.

    Example:
        >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
        >>> transition_weights(path, [path]).figure
        'η = 0.333; symmetric, rows and columns sum to 1 within 1e-15 (1 distinct P in 1 iterations)'
    """
    used = graphs_of("used_links", used_links, steps=True)
    steps, devices, _ = used.shape
    graphs = graphs_of("adjacency", adjacency, (steps, devices))
    looked_at = [used] if graphs.ndim == 2 else [used, graphs]
    instants, _ = distinct(*looked_at)  # equal links in equal graphs have equal weights
    smallest, uneven, unbalanced = 1.0, 0.0, 0.0
    for part in _blocks(len(instants), devices**2):
        chosen = instants[part]
        matrices = transition_matrices(graphs if graphs.ndim == 2 else graphs[chosen], used[chosen])
        in_use = used[chosen] | np.eye(devices, dtype=bool)
        smallest = float(np.min(matrices, where=in_use, initial=smallest))
        uneven = max(uneven, float(np.abs(matrices - matrices.swapaxes(1, 2)).max()))
        sums = np.concatenate([matrices.sum(1), matrices.sum(2)])
        unbalanced = max(unbalanced, float(np.abs(sums - 1).max()))
    sound = smallest > 0 and max(uneven, unbalanced) <= _ROUNDING
    symmetric = "symmetric" if uneven == 0 else f"symmetric within {uneven:.0e}"
    figure = (
        f"η = {smallest:.3g}; {symmetric}, rows and columns sum to 1 within "
        f"{max(unbalanced, 1e-15):.0e} ({len(instants):,} distinct P in {steps:,} iterations)"
    )
    name = "transition weights (Assumption 2)"
    return Finding(name, "holds" if sound else "does not hold", figure, smallest)


def convexity(model: str) -> Finding:
    """Assumption 3: every F_i is convex, and F has a minimiser.

    Hinge and cross-entropy are convex in the scores, which svm and logistic take linearly in the
    weights; the squared distance of quadratic is convex as it is. F of svm is piecewise linear and that
    of quadratic is quadratic, and neither falls below 0: both have a minimiser. F of logistic has none
    if its classes can be separated, since longer weights are then always better.

    Example:
        >>> convexity("lenet5").verdict
        'does not hold'
    """
    name = "convexity (Assumption 3)"
    if model == "logistic":
        figure = "logistic is convex; it has a minimiser only where its classes overlap"
        return Finding(name, "holds", figure, None)
    if model in ("svm", "quadratic"):
        return Finding(name, "holds", f"{model} is convex and has a minimiser", None)
    if model == "lenet5":
        return Finding(name, "does not hold", "lenet5 is a neural network", None)
    return Finding(name, _UNKNOWN, f"nothing is known about the model {model}", None)


def gradient_bounds(model: str, images: ArrayLike, classes: int) -> GradientBounds | None:
    """Bounds L and L∞ on every gradient that a linear model can have on these images.

    The gradient of one sample is an outer product u ⊗ z of the loss's gradient u by the scores and the
    input z = (x, 1), the 1 for the bias. So ‖g‖₂ = ‖u‖₂·‖z‖₂ and ‖g‖∞ = ‖u‖∞·‖z‖∞.

    - svm: with a ≤ C − 1 margins that are not kept, u has a entries 1/C and one −a/C. Then
      ‖u‖₂ = √(a + a²)/C ≤ √((C−1)/C) and ‖u‖∞ = a/C ≤ (C−1)/C, reached when none is kept.
    - logistic: u = p − e_y with probabilities p. Then ‖u‖₂² = (1 − p_y)² + Σ_{c≠y} p_c², which is at
      most 2(1 − p_y)² ≤ 2, and ‖u‖∞ ≤ 1; approached when all of p is on one wrong class.

    Means of gradients are within the same bounds: those of a mini-batch, of a device's data, and at a
    kink any mixture of both sides. For F_i as the paper's sum over D_i, multiply by |D_i|.

    Args:
        model: its name.
        images: the training images (sample, …): bytes as stored, or numbers as the model sees them.
        classes: number of classes, C.

    Returns:
        The bounds, or None for other models. Their gradients grow with the weights without end:
        w_y − x in quadratic, and in lenet5 those of a layer with the weights of the next.

    Example:
        >>> gradient_bounds("logistic", [[2.0, -2.0]], classes=10)
        GradientBounds(two=4.242640687119286, infinity=2.0)
    """
    if model == "svm":
        two, infinity = math.sqrt((classes - 1) / classes), (classes - 1) / classes
    elif model == "logistic":
        two, infinity = math.sqrt(2), 1.0
    else:
        return None
    images = np.asarray(images)
    longest = largest = 1.0  # the bias alone
    for part in _blocks(len(images), images[:1].size):
        pixels = images[part].reshape(len(images[part]), -1)
        inputs = _normalised_bytes()[pixels] if images.dtype == np.uint8 else pixels.astype(float)
        longest = max(longest, float(np.sqrt((inputs**2).sum(1) + 1).max()))
        largest = max(largest, float(np.abs(inputs).max()))
    return GradientBounds(two * longest, infinity * largest)


def bounded_gradients(
    two_norms: ArrayLike, infinity_norms: ArrayLike, bounds: GradientBounds | None
) -> Finding:
    """Assumption 4: ‖∇F_i(w)‖₂ ≤ L and ‖∇F_i(w)‖∞ ≤ L∞, for every w.

    Args:
        two_norms: ‖g_i(k)‖₂ as recorded, of any shape.
        infinity_norms: ‖g_i(k)‖∞ as recorded.
        bounds: what `gradient_bounds` gave; without them the largest of a run is no bound.

    Returns:
        A finding whose value is the largest of both norms.

    Raises:
        ExperimentError: a gradient exceeds its bound, which therefore is that of other images.

    Example:
        >>> bounded_gradients([1.0, 2.5], [0.5, 0.25], GradientBounds(3.0, 1.0)).figure
        '‖g‖₂ up to 2.5, L = 3; ‖g‖∞ up to 0.5, L∞ = 1'
    """
    name = "bounded gradients (Assumption 4)"
    seen = [float(np.max(np.asarray(norms, float))) for norms in (two_norms, infinity_norms)]
    if bounds is None:
        figure = f"‖g‖₂ up to {seen[0]:.4g}, ‖g‖∞ up to {seen[1]:.4g}; no bound is known for this model"
        return Finding(name, _UNKNOWN, figure, seen)
    for norm, largest, bound in zip(("two_norms", "infinity_norms"), seen, bounds, strict=True):
        if largest > bound * (1 + _ROUNDING):
            raise ExperimentError(
                f"{norm}: reach {largest:g}, and no gradient on these images is above {bound:g}; "
                "give the model and the images that the run trained on"
            )
    figure = (
        f"‖g‖₂ up to {seen[0]:.4g}, L = {bounds.two:.4g}; "
        f"‖g‖∞ up to {seen[1]:.4g}, L∞ = {bounds.infinity:.4g}"
    )
    return Finding(name, "holds", figure, seen)


def step_sizes(schedule: PowerDecay) -> tuple[Finding, Finding, Finding]:
    """Assumption 5: α(k) → 0, Σ α(k) = ∞ and Σ α(k)² < ∞; of α(k) = a/(b+k)^c with c in (0.5, 1].

    The paper's own α(k) = 1/√(1+k) has c = 0.5, and fails the third.

    Returns:
        A finding for each condition. The values are the limit and the sums, which are finite where
        Σ a^p/(b+k)^(p·c) = a^p·ζ(p·c, b) has an exponent above 1.

    Example:
        >>> [finding.verdict for finding in step_sizes(PowerDecay(decay=0.5))]
        ['holds', 'holds', 'does not hold']
    """
    a, b, c = schedule
    if not (a > 0 and b > 0):
        raise ExperimentError(f"schedule={schedule}: a and b must be above 0")
    limit = 0.0 if c > 0 else a if c == 0 else math.inf
    total, squares = _sum_of_powers(schedule, 1), _sum_of_powers(schedule, 2)
    vanishing = f"α(k) = {schedule} → {limit:g}"
    endless = f"Σα = ∞ with c = {c:g}, at most 1"
    if math.isfinite(total):
        endless = f"Σα = {total:.4g} with c = {c:g}; at most 1 is needed"
    summable = f"Σα² = {squares:.4g} with c = {c:g}, above 0.5"
    if math.isinf(squares):
        summable = f"Σα² = ∞ with c = {c:g}; above 0.5 is needed"
    if c == 0.5:
        summable += ". So the paper's own 1/√(1+k) is outside its Theorem 1"
    return (
        _judged("step sizes vanish (Assumption 5)", c > 0, vanishing, limit),
        _judged("step sizes sum to infinity (Assumption 5)", math.isinf(total), endless, total),
        _judged("squared step sizes sum (Assumption 5)", math.isfinite(squares), summable, squares),
    )


def physical_connectivity(adjacency: ArrayLike) -> Finding:
    """Assumption 6a: for some B1, the union of any B1 physical graphs in a row is connected.

    Args:
        adjacency: (step, device, device), or (device, device) for a graph that never changes; only
            the latter tells of iterations to come.

    Returns:
        A finding whose value is B1, None if the union of all graphs is not connected.

    Example:
        >>> physical_connectivity([[0, 1], [1, 0]])[1:]
        ('holds', 'B1 = 1: the graph never changes and is connected', 1.0)
    """
    name = "connectivity of the physical graph (Assumption 6a)"
    graphs = graphs_of("adjacency", adjacency)
    window = connection_window(graphs)
    if graphs.ndim == 2:
        if window is None:
            return Finding(name, "does not hold", "the graph never changes and is not connected", None)
        return Finding(name, "holds", "B1 = 1: the graph never changes and is connected", 1.0)
    if window is None:
        figure = f"not even all {len(graphs):,} graphs together are connected"
        return Finding(name, _UNKNOWN, figure, None)
    return Finding(name, _UNKNOWN, f"B1 = {window:,} over {len(graphs):,} iterations", float(window))


def bounded_waits(fired: ArrayLike) -> Finding:
    """Assumption 6b: for some B2, every device broadcasts in any B2 iterations in a row.

    Args:
        fired: who broadcast (step, device).

    Returns:
        A finding whose value is the longest wait of each device; B2 is at least the largest.

    Example:
        >>> bounded_waits([[1, 0], [1, 0], [0, 1], [1, 0]]).figure
        'B2 = 3 over 4 iterations; device by device 2, 3'
    """
    fired = np.asarray(fired, bool)
    waits = broadcast_waits(fired)
    each = ", ".join(f"{wait:,}" for wait in waits)
    figure = f"B2 = {waits.max():,} over {len(fired):,} iterations; device by device {each}"
    silent = np.flatnonzero(~fired.any(0)).tolist()
    if silent:
        figure += f"; never from {', '.join(map(str, silent))}"
    name = "bounded waits between broadcasts (Assumption 6b)"
    return Finding(name, _UNKNOWN, figure, [float(wait) for wait in waits])


def information_flow(used_links: ArrayLike, physical_window: int | None, longest_wait: int) -> Finding:
    """What Assumption 6 is for: the links in use over any B = (l + 2)·B1 iterations are connected.

    It follows from B1 and B2, of a run as of all time: a link that is there B2 − 1 iterations after a
    window began either appeared since, and was used then, or its ends have broadcast since. So already
    B1 + B2 − 1 iterations suffice.

    Args:
        used_links: (step, device, device).
        physical_window: B1 of the run.
        longest_wait: B2 of the run.

    Returns:
        A finding about the run, whose value is the smallest B within it.

    Example:
        >>> pair, nothing = [[0, 1], [1, 0]], [[0, 0], [0, 0]]
        >>> information_flow([pair, nothing, nothing, pair], 1, 3)[1:]
        ('holds', "B = 3 over 4 iterations; the paper's (l+2)·B1 = 4", 3.0)
    """
    name = "connectivity of the information flow (after Assumption 6)"
    links = graphs_of("used_links", used_links, steps=True)
    window = connection_window(links)
    seen = f"B = {window:,} over" if window else "the links in use are not connected over all"
    figure = f"{seen} {len(links):,} iterations; the paper's (l+2)·B1 "
    value = None if window is None else float(window)
    if physical_window is None:
        return Finding(name, _UNKNOWN, figure + "is not known without B1", value)
    promised = promised_window(physical_window, longest_wait)
    figure += f"= {promised:,}"
    if window is not None and window <= promised:
        return Finding(name, "holds", figure, value)
    if promised > len(links):
        return Finding(name, _UNKNOWN, figure, value)
    return Finding(name, "does not hold", figure, value)


def threshold_decay(step_size: PowerDecay, threshold: PowerDecay) -> Finding:
    """Remark 3: γ(k)/α(k) → Ω, finite and above 0, and Ω = γ(0)/α(0).

    If the thresholds fell more slowly than the steps, broadcasts would cease; if faster, they would
    come in every iteration.

    Args:
        step_size: α.
        threshold: γ; here always the same.

    Returns:
        A finding whose value is the limit.

    Example:
        >>> threshold_decay(PowerDecay(), PowerDecay())[1:]
        ('holds', 'γ/α is 1 at k = 0 and goes to 1', 1.0)
    """
    first = threshold.scale / threshold.offset**threshold.decay
    first *= step_size.offset**step_size.decay / step_size.scale
    limit = 0.0 if threshold.decay > step_size.decay else math.inf
    if threshold.decay == step_size.decay:
        limit = threshold.scale / step_size.scale
    holds = 0 < limit < math.inf and math.isclose(first, limit)
    figure = f"γ/α is {first:g} at k = 0 and goes to {limit:g}"
    return _judged("decay of the thresholds (Remark 3)", holds, figure, limit)


def guideline(
    bandwidth: ArrayLike, local_iterations: float, gradient_bound: float, ratio: float = 1.0
) -> float:
    """Remark 2: the r with which a device takes about K steps from one broadcast to the next.

    r = (α(0)/γ(0)) · (1/ρ) · K · L∞, where 1/ρ is the mean of 1/ρ_i = b_i

    Args:
        bandwidth: b_i of each device.
        local_iterations: K, wished for.
        gradient_bound: L∞.
        ratio: α(0)/γ(0).

    Example:
        >>> guideline([1000.0, 9000.0], local_iterations=2, gradient_bound=0.005)
        50.0
    """
    return float(ratio * np.mean(np.asarray(bandwidth, float)) * local_iterations * gradient_bound)


def decay_fit(iterations: ArrayLike, values: ArrayLike) -> DecayFit:
    """How fast a curve falls: value ≈ C·k^(−s), by least squares of its second half in logarithms.

    Args:
        iterations: k (point,), rising.
        values: (point,). What has no logarithm is left out of the fit: k = 0, and values that are 0,
            negative or not finite.

    Returns:
        s, C and the first and last values; s and C are NaN if fewer than two points are left.

    Example:
        >>> round(decay_fit([0, 1, 4, 16, 64], [9.0, 8.0, 4.0, 2.0, 1.0]).exponent, 6)
        0.5
    """
    k, curve = np.asarray(iterations, float), np.asarray(values, float)
    if k.ndim != 1 or k.shape != curve.shape or not k.size:
        raise ExperimentError(
            f"values: have shape {curve.shape} for iterations of shape {k.shape}; give one for each"
        )
    half = slice(k.size // 2, None)
    usable = (k[half] > 0) & (curve[half] > 0) & np.isfinite(curve[half])
    slope = height = math.nan
    if usable.sum() >= 2:
        slope, height = np.polyfit(np.log(k[half][usable]), np.log(curve[half][usable]), 1)
    return DecayFit(-float(slope), math.exp(height), float(curve[0]), float(curve[-1]))


def _judged(name: str, holds: bool, figure: str, value: float) -> Finding:
    return Finding(name, "holds" if holds else "does not hold", figure, value)


def _sum_of_powers(schedule: PowerDecay, power: int) -> float:
    """Σ_k α(k)^power, over all k ≥ 0."""
    from scipy.special import zeta

    exponent = power * schedule.decay
    return schedule.scale**power * float(zeta(exponent, schedule.offset)) if exponent > 1 else math.inf


def _blocks(count: int, size: int) -> Iterable[slice]:
    """Slices that cover `count` entries of `size` numbers, a block at a time."""
    step = max(1, _BLOCK_ELEMENTS // max(1, size))
    return (slice(start, start + step) for start in range(0, count, step))


def _normalised_bytes() -> np.ndarray:
    """What each of the 256 values of a pixel is to the model."""
    from efhc_jax.models.base import PIXEL_MEAN, PIXEL_STD

    return (np.arange(256) / 255 - PIXEL_MEAN) / PIXEL_STD
