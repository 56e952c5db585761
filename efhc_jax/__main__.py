"""`python -m efhc_jax` is the command `efhc`."""

from efhc_jax.cli import entry

entry()
