"""Which devices can reach each other: topologies, dynamics, and their storage."""
