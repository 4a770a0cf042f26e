"""`python -m greenbeat`: the command line."""

import sys

from greenbeat.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
