"""What an import accepts, where limits and names are unusual."""

import pytest

import greenbeat as gb


@pytest.mark.parametrize("limits", ["1 65536", "0 65536", "1"])
def test_a_memory_that_may_grow_to_the_end_fits_an_import_that_says_so(limits: str) -> None:
    owner = gb.Module.from_wat(f'(module (memory (export "m") {limits}))').instantiate()
    user = gb.Module.from_wat('(module (import "a" "m" (memory 0 65536)))')
    assert user.instantiate({"a": owner})
    with pytest.raises(gb.LinkError):
        gb.Module.from_wat('(module (import "a" "m" (memory 0 65535)))').instantiate({"a": owner})


def test_a_table_that_may_grow_to_the_end_fits_an_import_that_says_so() -> None:
    owner = gb.Module.from_wat('(module (table (export "t") 1 4294967295 funcref))').instantiate()
    assert gb.Module.from_wat('(module (import "a" "t" (table 1 4294967295 funcref)))').instantiate({"a": owner})


def test_an_export_may_have_any_name() -> None:
    """Also the names of attributes that Python objects have."""
    names = ["exports", "keys", "get", "__class__", "__dict__", "_address", "", "\\00", "a b", "items"]
    fields = " ".join(f'(func (export "{name}") (result i32) (i32.const {place}))' for place, name in enumerate(names))
    owner = gb.Module.from_wat(f"(module {fields})").instantiate()
    imports = " ".join(f'(import "m" "{name}" (func $f{place} (result i32)))' for place, name in enumerate(names))
    calls = " ".join(f'(func (export "{place}") (result i32) (call $f{place}))' for place in range(len(names)))
    user = gb.Module.from_wat(f"(module {imports} {calls})")
    for given in (owner, owner.exports):
        exports = user.instantiate({"m": given}).exports
        assert [exports[str(place)]() for place in range(len(names))] == list(range(len(names)))
