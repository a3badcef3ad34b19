"""Kernels in two versions each, and a draft that is to be made faster."""
