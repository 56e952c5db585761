"""The paper's evaluation, reproduced: its settings, its figure, and a verdict on each claim."""
