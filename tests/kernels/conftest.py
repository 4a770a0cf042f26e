"""The first example of a test may compile the engine, and a kernel: no deadline for examples."""

from hypothesis import settings

settings.register_profile("kernels", deadline=None)
settings.load_profile("kernels")
