"""`wasi_unstable`: its own layouts and order."""

import greenbeat as gb
from greenbeat.wasi.unstable import MODULES, UNSTABLE

from .guest import Guest


def test_the_functions_are_all_there() -> None:
    assert len(MODULES["wasi_snapshot_preview1"]) == 46
    assert set(MODULES["wasi_snapshot_preview1"]) - set(UNSTABLE) == {"sock_accept"}


def test_what_differs() -> None:
    with Guest(gb.Wasi(files={"file": "0123456789"}), module="wasi_unstable") as found:
        opened = found.open("file")
        assert found.seek(opened, -3, 1) == 7
        assert found.seek(opened, -2, 0) == 5
        assert found.seek(opened, 1, 2) == 1
        assert found.refusal("fd_seek", opened, 0, 3, 0) == "INVAL"
        found.call("path_filestat_get", 3, 0, "file", 0x300)
        by_path = found.get("QQB3xIQQQQ", 0x300)
        found.call("fd_filestat_get", opened, 0x300)
        assert by_path[2:5] == (4, 1, 10)
        assert found.get("QQB3xIQ", 0x300) == by_path[:5]
        found.put(0x1000, "QB7xQI4xQQH6x", 5, 0, 77, 1, 1_000_000, 0, 0)
        found.put(0x1038, "QB7xI", 6, 1, opened)
        found.call("poll_oneoff", 0x1000, 0x2000, 2, 0)
        assert found.get("I") == (1,)
        assert found.get("QHB5xQ", 0x2000) == (6, 0, 1, 9)
