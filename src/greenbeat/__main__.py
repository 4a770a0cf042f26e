"""`python -m greenbeat`: the command line."""

import sys

from greenbeat.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
