"""Tasks: stacks of their own, and what runs on them."""
