"""Green tasks: stacks and their cache, the switch between them, workers, waiting, channels, timers."""
