"""Programs for accelerators that need not be there, compiled and counted.

XLA compiles for a GPU or TPU from a description of it. The optimised program is read as text: each
operation left in it is a kernel launch, and its operands and results are the bytes that it moves. Times
derived from these are a model, never a measurement.
"""
