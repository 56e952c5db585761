"""Suites of `efhc bench`; each has `run(quick, say)`, which returns its report."""
