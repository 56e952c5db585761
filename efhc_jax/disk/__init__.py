"""Files on disk: written whole, locked, with checksums, and caches."""
