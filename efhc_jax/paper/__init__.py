"""The paper's evaluation, run again: its settings, its figure, and a verdict on each of its claims."""
