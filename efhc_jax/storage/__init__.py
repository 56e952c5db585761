"""Bytes on disk: files that are whole, locks, checksums, checkpoints, sweep folders."""
