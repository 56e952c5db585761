"""Every device takes a gradient step in every iteration, and every link can be used."""

from efhc_jax.participation.base import Participation

PARTICIPATION = Participation()
