"""What a WebAssembly module is and means: binary format, validation, text format, operations."""
