"""Speed, measured: against what a user could pick instead, and against what the machine can do."""
