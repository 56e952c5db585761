"""The efhc command line with your own policy, graph, model and dataset.

Use it like efhc, for example:
python examples/my_efhc.py run --policy thrifty --graph two_rooms --dataset stripes --model perceptron \
    --learning-rate 0.1 --iterations 500
"""

import sys

import add_dataset
import add_graph
import add_model
import add_policy

from efhc_jax.cli import main

MEMBERS = add_dataset, add_graph, add_model, add_policy  # importing them registers them

if __name__ == "__main__":
    sys.exit(main())
