"""EF-HC as one would write it without this project, to time against it.

`torch_modules` is the usual style, one PyTorch module a device; `torch_stacked` is PyTorch with
all devices and runs in one tensor; `numpy_stacked` is the same in NumPy with gradients by hand.
Each has `run(problem, dtype)` and `evaluate(model, weights, images, labels, dtype)`; what goes in
and out is in `problem`. `load(problem, dtype)` makes the images and labels that `run` works on, once
for several runs that are timed.
"""
