"""Images of linked engines: made by one process, started from by others, and never believed too much."""

import ctypes
import os
from pathlib import Path

import pytest

from greenbeat.native import cache
from greenbeat.native.engine import Engine
from greenbeat.native.image import Unlinkable, load, make
from greenbeat.native.start import possible, signature
from tests.native.test_engine import never, toy, toy_engine

__all__ = ["toy"]

needs_images = pytest.mark.skipif(not possible(), reason="no images are made for this platform")


def image_in(folder: Path) -> Path:
    [found] = (folder.parent / "cache").glob("*.image")
    return found


@needs_images
def test_a_start_from_an_image(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = toy_engine(toy, images=True)
    expected = first.function("run")(0, 5)
    monkeypatch.setattr(Engine, "obtain", never)
    second = toy_engine(toy, images=True)
    assert second.function("run")(0, 5) == expected
    assert second.function("hit_count")() == 6
    assert second.key == first.key
    everything = second.function("everything")
    assert everything.argtypes == (ctypes.c_int32, ctypes.c_double, ctypes.c_void_p, ctypes.c_bool)
    byte = ctypes.c_uint8()
    assert everything(40, 2.5, ctypes.byref(byte), True) is False
    assert byte.value == 42


@needs_images
def test_images_have_statics_of_their_own(toy: Path) -> None:
    toy_engine(toy, images=True).load()
    counts = []
    for _ in range(2):
        engine = toy_engine(toy, images=True)
        engine.function("run")(1, 5)
        counts.append(engine.function("hit_count")())
        assert ctypes.c_uint64.from_address(engine.address("toy.state.hits")).value == counts[-1]
    assert counts == [5, 5]


@needs_images
def test_a_changed_source_starts_anew(toy: Path) -> None:
    before = toy_engine(toy, images=True).function("run")(0, 5)
    state = toy / "state.py"
    state.write_text(state.read_text().replace("return weight", "return weight + 1"))
    after = toy_engine(toy, images=True).function("run")(0, 5)
    assert after == toy_engine(toy).function("run")(0, 5) != before


@needs_images
def test_a_source_with_the_same_size_and_date_is_another(toy: Path) -> None:
    before = signature({"toy": toy}, ())
    state = toy / "state.py"
    status = state.stat()
    state.write_text(state.read_text().replace("10", "20"))
    os.utime(state, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert state.stat().st_size == status.st_size
    assert signature({"toy": toy}, ()) not in (None, before)


@needs_images
@pytest.mark.parametrize("damage", ["bit", "short", "empty", "writable"])
def test_a_bad_image_is_made_anew(toy: Path, damage: str) -> None:
    toy_engine(toy, images=True).load()
    image = image_in(toy)
    data = image.read_bytes()
    if damage == "bit":
        image.write_bytes(data[:5000] + bytes([data[5000] ^ 4]) + data[5001:])
    elif damage == "writable":
        image.chmod(0o666)
    else:
        image.write_bytes(data[:100] if damage == "short" else b"")
    obtained: list[str] = []

    class Watched(Engine):
        def obtain(self) -> cache.Compiled:
            obtained.append(self.key)
            return super().obtain()

    known = toy_engine(toy)
    engine = Watched(known.modules, known.units, packages=known.packages, images=True)
    assert engine.function("run")(1, 5) == 15 + 11 + 10
    assert len(obtained) == 1


@needs_images
def test_old_images_go(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = toy.parent / "cache"
    folder.mkdir()
    for number in range(20):
        (folder / f"{number}.image").write_bytes(b"")
    toy_engine(toy, images=True).load()
    assert len(list(folder.glob("*.image"))) == 8


def test_what_is_no_object() -> None:
    for data in (b"", b"\x7fELF", b"MZ" + bytes(200), b"\x7fELF\x02\x01" + bytes(200)):
        with pytest.raises(Unlinkable):
            make([data], [])


def test_engines_have_no_images_unless_they_are_told(toy: Path) -> None:
    toy_engine(toy).load()
    assert not list((toy.parent / "cache").glob("*.image"))


@needs_images
def test_a_symbol_that_is_missing(toy: Path) -> None:
    compiled = toy_engine(toy).obtain()
    with pytest.raises(Unlinkable, match="nowhere is not defined"):
        make(compiled.objects.values(), ["nowhere"])
    objects = [compiled.objects["core"]]
    image = make(objects, ["run"])
    assert any("toy" in name for name in image.outside)
    assert load(image) is None


@needs_images
def test_an_object_twice(toy: Path) -> None:
    compiled = toy_engine(toy).obtain()
    core = compiled.objects["core"]
    with pytest.raises(Unlinkable, match="is defined twice"):
        make([core, core], [])
