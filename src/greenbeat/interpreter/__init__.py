"""Cells, the translator that writes them, and the tail-call handlers that run them."""
