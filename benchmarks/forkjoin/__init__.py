"""Parallel programs: each a parallel kernel, a serial one of its own, and peers that compute the same."""
