"""Code made readable, in the three forms it has: WebAssembly, the interpreter's cells, and the processor's instructions."""
