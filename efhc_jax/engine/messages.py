"""Messages, bits and transmission time of an iteration."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from efhc_jax.network.slots import Neighbors, of_rows, sum_of_slots
from efhc_jax.resources.bandwidth import transmission_time, upload_time

BITS_PER_NUMBER = 32


class Sent(NamedTuple):
    """Totals over all devices."""

    messages: Int[Array, ""]  # each over one link, in one direction
    bits: Float[Array, ""]
    time: Float[Array, ""]  # transmission time
    new_link_time: Float[Array, ""]  # the part of links used only because they are new


class Traffic(NamedTuple):
    """Who may send over which links in an iteration."""

    adjacency: Bool[Array, "row slot"]  # A(k)
    neighbors: Neighbors
    used: Bool[Array, "row slot"]  # links that carry anything
    only_new: Bool[Array, "row slot"]  # those of them whose ends did not fire
    fired: Bool[Array, "device"]
    bandwidth: Float[Array, "device"]


def both_ways(traffic: Traffic, numbers: int, coordinated: Bool[Array, ""]) -> Sent:
    """Both ends of every link in use send a message; with a coordinator, every device uploads one.

    Args:
        traffic: the links.
        numbers: size of a message.
        coordinated: whether there is a coordinator.
    """
    adjacency, neighbors, bandwidth = traffic.adjacency, traffic.neighbors, traffic.bandwidth
    messages = _count(traffic.used)
    uploads = jnp.int32(len(bandwidth))
    messages = jnp.where(coordinated, uploads, messages)
    time = jnp.where(
        coordinated,
        upload_time(bandwidth, numbers),
        transmission_time(traffic.used, adjacency, bandwidth, numbers, neighbors),
    )
    return Sent(
        messages,
        messages * jnp.asarray(BITS_PER_NUMBER * numbers, bandwidth.dtype),
        time,
        transmission_time(traffic.only_new, adjacency, bandwidth, numbers, neighbors),
    )


def one_way(
    traffic: Traffic, size: int, bits: Float[Array, "device"], appeared: Bool[Array, "row slot"]
) -> Sent:
    """Devices that fired send their message over all links, and both ends of new links whole copies.

    Args:
        traffic: the links.
        size: n, the size of a copy.
        bits: of each device's message.
        appeared: links that are new.
    """
    adjacency, neighbors, bandwidth = traffic.adjacency, traffic.neighbors, traffic.bandwidth
    whole = appeared & traffic.used
    sends = of_rows(traffic.fired, neighbors) & adjacency & ~whole
    numbers = jnp.where(sends, of_rows(bits, neighbors) / BITS_PER_NUMBER, 0)
    numbers = jnp.where(whole, jnp.asarray(size, bits.dtype), numbers)
    degree = jnp.maximum(sum_of_slots(adjacency, neighbors), 1)

    def time(numbers: Array) -> Array:
        return jnp.mean(sum_of_slots(numbers, neighbors) / degree / bandwidth)

    return Sent(
        _count(sends | whole),
        BITS_PER_NUMBER * jnp.sum(numbers),
        time(numbers),
        time(jnp.where(traffic.only_new, numbers, 0)),
    )


def _count(slots: Bool[Array, "row slot"]) -> Int[Array, ""]:
    """Number of true slots.

    The bound holds in any case. Without it compilers merge both sums into one that takes a kernel of its
    own; those of each device are computed for the transmission time anyway.
    """
    return jnp.minimum(slots.sum(1, dtype=jnp.int32), slots.shape[1]).sum()
