"""Other implementations of EF-HC, to compare with.

`torch_modules` is common PyTorch style with one module per device; `torch_stacked` is PyTorch with all
devices and runs in one tensor; `numpy_stacked` is the same in NumPy with gradients derived by hand. Each
has `run(problem, dtype)` and `evaluate(model, weights, images, labels, dtype)`; `problem` defines their
arguments and results. `load(problem, dtype)` prepares the images and labels of `run`, once for several
timed runs.
"""
