"""From a guest's path to a folder and a name in it, one component at a time.

    walk(root, "a/link/../b", follow)         root ─▶ a ─▶ (link → "c/d") ─▶ c ─▶ d ─▶ back to c ─▶ "b"
                                              └────────── the folders passed, kept open ─────────┘

No component is ever given to the host together with another, and the host follows no link: links are read and their
targets walked here. `..` goes back to the folder that was passed, whatever has become of its place in the tree since.
So nothing that happens on the host meanwhile can lead outside of the root.
"""

from greenbeat.wasi.constants import Errno, Failure, errno_of
from greenbeat.wasi.folders import Folder

MOST_LINKS = 40
LONGEST_PATH = 4096
DEEPEST = 255
_NO_FOLDER = (Errno.NOTDIR, Errno.LOOP, Errno.MLINK)


class Place:
    """What a path leads to. As a context manager it closes the folders that were passed.

    Attributes:
        folder: the last folder.
        name: the name in it, which may not exist; `.` if the path leads to the folder itself.
        wants_folder: the path ends in a slash: it is good for a folder only.
    """

    def __init__(self, passed: list[Folder], name: bytes, wants_folder: bool) -> None:
        self._passed, self.name, self.wants_folder = passed, name, wants_folder
        self.folder = passed[-1]

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, *error: object) -> None:
        _close(self._passed)

    def changing(self) -> "Place":
        """The same place, to change something there.

        Raises:
            Failure: ROFS, it was given for reading only.
        """
        if not self.folder.writable:
            _close(self._passed)
            raise Failure(Errno.ROFS)
        return self


def _close(passed: list[Folder]) -> None:
    while len(passed) > 1:
        passed.pop().close()


def _components(path: bytes) -> list[bytes]:
    """The components of a relative path, last first.

    Raises:
        Failure: NOENT, it is empty; NOTCAPABLE, it is absolute; INVAL, it holds a NUL; NAMETOOLONG.
    """
    if not path:
        raise Failure(Errno.NOENT)
    if path.startswith(b"/"):
        raise Failure(Errno.NOTCAPABLE)
    if b"\0" in path:
        raise Failure(Errno.INVAL)
    if len(path) > LONGEST_PATH:
        raise Failure(Errno.NAMETOOLONG)
    return [part for part in reversed(path.split(b"/")) if part not in (b"", b".")]


def ends_in_slash(path: bytes) -> bool:
    """Whether a path stands for a folder by its form alone."""
    return path.endswith((b"/", b"/.", b"/..")) or path in (b".", b"..")


def walk(root: Folder, path: str, follow: bool) -> Place:
    """Find the place of a path; a link in the last component is followed if `follow` says so.

    Raises:
        Failure: NOTCAPABLE, the path leads out of the root or an absolute link was met; LOOP, there are too many links;
            ILSEQ, INVAL, NAMETOOLONG: it is none; NOENT, NOTDIR: a folder on the way is missing.
        OSError: the host refuses.
    """
    encoded = path.encode()
    pending = _components(encoded)
    wants_folder = ends_in_slash(encoded)
    passed = [root]
    links = 0
    try:
        while pending:
            name = pending.pop()
            if name == b"..":
                if len(passed) == 1:
                    raise Failure(Errno.NOTCAPABLE)
                passed.pop().close()
                continue
            target = None
            if pending:
                target = _pass(passed, name)
            elif follow:
                target = passed[-1].link_target(name)
            if target is not None:
                links += 1
                if links > MOST_LINKS:
                    raise Failure(Errno.LOOP)
                wants_folder |= not pending and ends_in_slash(target)
                pending += _components(target)
            elif not pending:
                return Place(passed, name, wants_folder)
    except BaseException:
        _close(passed)
        raise
    return Place(passed, b".", True)


def _pass(passed: list[Folder], name: bytes) -> bytes | None:
    """Go into a folder; or, if it is a link, say where that leads."""
    try:
        found = passed[-1].passage(name)
    except OSError as error:
        problem = errno_of(error)
    except Failure as failure:
        problem = failure.errno
    else:
        if len(passed) > DEEPEST:
            found.close()
            raise Failure(Errno.NAMETOOLONG)
        passed.append(found)
        return None
    target = passed[-1].link_target(name) if problem in _NO_FOLDER else None
    if target is None:
        raise Failure(problem)
    return target
