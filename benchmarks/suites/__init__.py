"""What `efhc bench` can measure; each suite has `run(quick, say)`, which returns its report."""
