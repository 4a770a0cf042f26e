"""Kernels: Python functions with type hints, compiled to machine code with Python's meaning."""
