"""Greenbeat: WebAssembly and typed Python kernels at native speed."""
