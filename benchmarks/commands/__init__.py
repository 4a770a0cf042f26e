"""WASI commands that benchmarks run; `tests.wasi.rebuild` makes them of their sources."""
