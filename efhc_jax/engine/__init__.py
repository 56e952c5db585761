"""The compiled program: Algorithm 1, and the batches of runs around it."""
