"""The host side: from an experiment to a result."""
