"""The cost of communication."""
