"""Results: datasets, files, statistics."""
