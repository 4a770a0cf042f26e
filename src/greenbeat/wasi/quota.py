"""How much a guest may use of files: open ones, bytes written, bytes kept in memory. See `greenbeat.Limits`."""

from greenbeat.wasi.constants import Errno, Failure
from greenbeat.wasi.handles import Buffers


class Quota:
    """What is left; None is no limit.

    Attributes:
        open_files: descriptors that may be open at a time.
        written: bytes that may still be written to files and streams: beyond, the guest gets DQUOT.
        stored: bytes that may still be kept in memory, for files and captured output: beyond, NOSPC.
    """

    def __init__(self, open_files: int, written: int | None, stored: int | None) -> None:
        self.open_files, self.written, self.stored = open_files, written, stored

    def writable(self, buffers: Buffers) -> Buffers:
        """As much of what is to be written as may be.

        Raises:
            Failure: DQUOT, nothing may be written any more.
        """
        if self.written is None:
            return buffers
        room, fitting = self.written, []
        for each in buffers:
            if room:
                fitting.append(each[:room])
                room -= len(fitting[-1])
        if buffers and not fitting:
            raise Failure(Errno.DQUOT)
        return fitting

    def wrote(self, count: int) -> None:
        """Some bytes were written."""
        if self.written is not None:
            self.written -= count

    def grow(self, count: int) -> None:
        """A file of the host's becomes larger without being written to.

        Raises:
            Failure: DQUOT, there is no room for so much.
        """
        if self.written is not None and count > 0:
            if count > self.written:
                raise Failure(Errno.DQUOT)
            self.written -= count

    def store(self, count: int) -> None:
        """Take room for some bytes in memory, or give it back.

        Raises:
            Failure: NOSPC, there is no room for so much.
        """
        if self.stored is not None:
            if count > self.stored:
                raise Failure(Errno.NOSPC)
            self.stored -= count
