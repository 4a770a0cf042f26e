"""The command line: `greenbeat run`, `inspect`, `wat`, `bench`.

`entry.py` finds the command and turns what went wrong into one line and an exit status; each command is a module with a
`parser()` and a `main(options)`. A command imports what it needs when it runs, so that `--help` is immediate.
"""

from greenbeat.cli.entry import main, process

__all__ = ["main", "process"]
