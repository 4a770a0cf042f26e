"""The benchmarks, one file per comparison, each run as `python -m benchmarks.NAME` from the project's root.

Each measures Greenbeat and its peers in the same run on the same machine, and prints ratios.
"""
