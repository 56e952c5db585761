"""Results, checkpoints and sweep folders on disk."""
