"""The settings of a run: `Experiment`, their limits and effects."""
