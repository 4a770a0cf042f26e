"""WASI: every function from a guest's side, and programs in C."""
