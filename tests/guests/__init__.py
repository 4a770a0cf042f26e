"""Small C programs run as guests, for what one module at a time can show about the engine."""
