"""WebAssembly modules that other people ship in packages, run as their users would."""
