"""Random numbers as functions of seed, stream, iteration and index."""
