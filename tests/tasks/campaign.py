"""A long search for schedules that break the scheduler.

    python -m tests.tasks.campaign --rounds 100000 --seed 1          faults in simulated workers
    GREENBEAT_CHECKED=1 python -m tests.tasks.campaign ...           with assertions

It ends with status 1 and the seed of the first program whose books are not balanced.
"""

import argparse
import sys

from tests.tasks.simulation import INTERRUPTIONS, NO_MEMORY, run_seed


def main() -> int:
    """Simulate as many random programs as asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    steps = 0
    for seed in range(options.seed, options.seed + options.rounds):
        wanted = 15 if seed % 8 else seed // 8 % 16
        faults = (INTERRUPTIONS | NO_MEMORY, INTERRUPTIONS, NO_MEMORY)[seed % 3]
        report = run_seed(seed, 1 + seed % 8, wanted, faults)
        steps += report.steps
        if report.problem:
            print(f"seed {seed}: problem {report.problem} after {report.steps} steps", file=sys.stderr)
            return 1
    print(f"{options.rounds} programs, {steps} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
