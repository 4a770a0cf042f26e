"""The child process: runs cases one after the other, and says which one it is at in a file that its parent watches.

    python -m tests.fuzz.worker KIND SEED FIRST COUNT PROGRESS_FILE

It prints a JSON object a line: findings as they come, and at the end how many cases there were of which outcome.
"""

from __future__ import annotations

import collections
import faulthandler
import gc
import json
import mmap
import os
import resource
import struct
import sys
import traceback

MEMORY = 3 << 30
SECONDS_OF_PROCESSOR = 3600
COLLECT = 50
# For the test of what the parent makes of a worker that dies.
DIE_AT = "GREENBEAT_FUZZ_DIE_AT"


def limit() -> None:
    """Give up the right to use much: memory, processor time, and core files."""
    # Not address space: reservations of memories are 8 GiB each.
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_OF_PROCESSOR, SECONDS_OF_PROCESSOR))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Run the cases."""
    kind, seed, first, count, progress = sys.argv[1:]
    limit()
    faulthandler.enable()
    from tests.fuzz.cases import FINDINGS, Case

    outcomes: collections.Counter[str] = collections.Counter()
    with open(progress, "r+b") as file, mmap.mmap(file.fileno(), 8) as place:
        for number in range(int(first), int(first) + int(count)):
            place[:8] = struct.pack("<q", number)
            if os.environ.get(DIE_AT) == str(number):
                os.abort()
            case = Case(kind, int(seed), number)
            data = case.module()
            if data is None:
                outcomes["no module"] += 1
                continue
            try:
                outcomes[case.check(data)] += 1
            except FINDINGS as finding:
                print(json.dumps({"case": str(case), "finding": str(finding)}), flush=True)
            except Exception:
                print(json.dumps({"case": str(case), "finding": traceback.format_exc()}), flush=True)
            if number % COLLECT == 0:
                gc.collect()
    print(json.dumps({"outcomes": outcomes, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)


if __name__ == "__main__":
    main()
