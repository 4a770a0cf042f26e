"""How a command fails: one line on stderr, and an exit status that shells and scripts understand.

    0    it worked                           126  the file is there but cannot be run
    1    the guest or the work failed        127  there is no such file
    2    the command line is wrong           130  Ctrl-C
    124  the time limit, as timeout(1)       141  nobody reads the output any more

Whatever finds such a failure raises `CommandError`, and `main` ends the process.
"""

FAILED, USAGE, TIMED_OUT, NOT_RUNNABLE, NOT_FOUND, INTERRUPTED, PIPE_CLOSED = 1, 2, 124, 126, 127, 130, 141


class CommandError(Exception):
    """A command cannot go on.

    Args:
        message: what was wrong, where, and what would be right; more lines are details.
        status: the exit status.
    """

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status
