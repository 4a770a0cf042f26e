"""Code made readable, in its three forms: WebAssembly, the interpreter's cells, the processor's instructions."""
