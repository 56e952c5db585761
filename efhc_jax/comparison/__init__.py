"""The methods of the field at equal costs: tuned on separate seeds, then run on paired ones."""
