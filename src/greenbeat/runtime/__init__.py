"""What guest code touches while it runs: memories, tables, instances, tasks, traps."""
