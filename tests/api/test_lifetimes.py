"""Who keeps whom alive: everything can be dropped in any order, and nothing stays behind."""

import gc
import itertools
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb
from greenbeat.api import bridge
from tests.api.conftest import Make

HOLDER = """(module
  (import "env" "f" (func $f (param externref) (result externref)))
  (table $t (export "table") 100 externref)
  (table $functions (export "functions") 4 funcref)
  (global $g (export "global") (mut externref) (ref.null extern))
  (memory (export "memory") 1)
  (type $call (func (param i32) (result i32)))
  (func (export "id") (param externref) (result externref) (local.get 0))
  (func (export "set") (param i32 externref) (table.set $t (local.get 0) (local.get 1)))
  (func (export "get") (param i32) (result externref) (table.get $t (local.get 0)))
  (func (export "set_global") (param externref) (global.set $g (local.get 0)))
  (func (export "pass") (param externref) (result externref) (call $f (local.get 0)))
  (func (export "keep_on_stack") (param externref) (result externref)
    (drop (call $f (ref.null extern))) (local.get 0))
  (func (export "put") (param i32 funcref) (table.set $functions (local.get 0) (local.get 1)))
  (func (export "call") (param i32 i32) (result i32)
    (call_indirect $functions (type $call) (local.get 1) (local.get 0)))
  (func (export "double") (param i32) (result i32) (i32.add (local.get 0) (local.get 0))))"""


class Item:
    """An object that can be watched."""


def identity(item: Any) -> Any:
    return item


@pytest.fixture
def holder(make: Make) -> gb.Instance:
    return make(HOLDER, {"env": {"f": identity}})


def retained(instance: gb.Instance) -> int:
    return int(bridge.native.retained_count(bridge.group_of(instance)))


# ---------------------------------------------------------------- objects in guests


def test_objects_stay_while_the_guest_has_them(holder: gb.Instance) -> None:
    exports: Any = holder.exports
    seen = [weakref.ref(item) for item in (Item(), Item())]
    in_table, in_global = Item(), Item()
    seen = [weakref.ref(in_table), weakref.ref(in_global)]
    exports.set(7, in_table)
    exports.set_global(in_global)
    del in_table, in_global
    for _ in range(1000):
        exports.id(Item())
    gc.collect()
    assert exports.get(7) is seen[0]() is not None
    assert exports["global"].value is seen[1]() is not None
    assert retained(holder) < 200
    exports.set(7, None)
    exports.set_global(None)
    for _ in range(200):
        exports.id(Item())
    assert [ref() for ref in seen] == [None, None]


def test_objects_on_the_stack_survive_a_sweep(make: Make) -> None:
    def f(item: Any) -> Any:
        for _ in range(500):
            exports.id(Item())
        return item

    exports = make(HOLDER, {"env": {"f": f}}).exports
    item = Item()
    seen = weakref.ref(item)
    result = exports.keep_on_stack(item)
    assert result is item
    del result

    def forget() -> Any:
        return exports.keep_on_stack(Item())

    assert isinstance(forget(), Item)
    assert seen() is item


def test_objects_of_suspended_calls_survive_a_sweep(make: Make) -> None:
    text = """(module (func (export "id") (param externref) (result externref) (local.get 0))
      (func (export "slow") (param externref i32) (result externref) (local i32)
        (loop $l (local.set 2 (i32.add (local.get 2) (i32.const 1))) (br_if $l (i32.lt_u (local.get 2) (local.get 1))))
        (local.get 0)))"""
    exports = make(text).exports
    calls = [exports.slow.start(Item(), 1000) for _ in range(50)]
    while sum(call.done or call.resume(fuel=300) for call in calls) < len(calls):
        for _ in range(100):
            exports.id(Item())
    assert all(isinstance(call.result, Item) for call in calls)


def test_everything_is_given_back_with_the_instance(make: Make) -> None:
    instance = make(HOLDER, {"env": {"f": identity}})
    items = [Item() for _ in range(100)]
    for index, item in enumerate(items):
        instance.exports.set(index, item)
    seen = [weakref.ref(item) for item in items]
    del items, item
    gc.collect()
    assert all(ref() is not None for ref in seen)
    del instance
    gc.collect()
    assert all(ref() is None for ref in seen)


# ---------------------------------------------------------------- any order


def test_any_order(make: Make) -> None:
    for order in itertools.permutations(range(5)):
        instance = make(HOLDER, {"env": {"f": identity}})
        exports = instance.exports
        kept: list[Any] = [instance, exports.double, exports.memory.view, exports.table, exports]
        group = bridge.group_of(instance)
        instance = exports = None  # type: ignore[assignment]
        for index in order:
            kept[index] = None
            if kept[1] is not None:
                assert kept[1](21) == 42
            if kept[2] is not None:
                kept[2][5] = 1
            if kept[3] is not None:
                kept[3][0] = "x"
        del group


def test_functions_in_a_table_keep_their_instances(make: Make) -> None:
    table = gb.Table("funcref", 4)
    text = """(module (import "e" "t" (table 4 funcref)) (elem (i32.const 1) $f)
      (global $n (mut i32) (i32.const 40))
      (func $f (param i32) (result i32) (i32.add (global.get $n) (local.get 0))))"""
    caller = """(module (import "e" "t" (table 4 funcref)) (type $call (func (param i32) (result i32)))
      (func (export "call") (param i32 i32) (result i32) (call_indirect (type $call) (local.get 1) (local.get 0))))"""
    make(text, {"e": {"t": table}})
    calls = make(caller, {"e": {"t": table}}).exports
    gc.collect()
    assert calls.call(1, 2) == 42
    found = table[1]
    del table, calls
    gc.collect()
    assert found(3) == 43


def test_functions_given_to_another_instance_keep_theirs(make: Make) -> None:
    first, second = make(HOLDER, {"env": {"f": identity}}), make(HOLDER, {"env": {"f": identity}})
    seen = weakref.ref(first)
    second.exports.put(2, first.exports.double)
    second.exports.functions[3] = gb.Function(lambda x: x + 1, ["i32"], ["i32"])
    del first
    gc.collect()
    assert seen() is None
    assert second.exports.call(2, 21) == 42 and second.exports.call(3, 1) == 2


def test_numeric_imports_keep_one_direction_only(make: Make) -> None:
    first = make(HOLDER, {"env": {"f": identity}})
    text = """(module (import "h" "double" (func $d (param i32) (result i32))) (import "h" "memory" (memory 1))
      (func (export "go") (param i32) (result i32) (call $d (local.get 0))))"""
    second = make(text, {"h": first})
    owner = weakref.ref(second)
    go = second.exports.go
    del first
    gc.collect()
    assert go(4) == 8
    del second, go
    gc.collect()
    assert owner() is None


def test_circles_of_groups_are_merged(make: Make) -> None:
    leaf = make(HOLDER, {"env": {"f": identity}})
    text = """(module (import "h" "double" (func $d (param i32) (result i32))) (table (export "t") 1 funcref)
      (func (export "double") (param i32) (result i32) (call $d (local.get 0))))"""
    middle = make(text, {"h": leaf})
    top = make(text, {"h": middle})
    # The top gets the leaf's table: all three can now reach each other.
    joining = '(module (import "a" "functions" (table 4 funcref)) (import "b" "t" (table 1 funcref)))'
    make(joining, {"a": leaf, "b": top})
    again = make(joining, {"a": leaf, "b": top})
    assert top.exports.double(5) == 10
    item = Item()
    leaf.exports.set(0, item)
    seen = weakref.ref(item)
    del item, leaf, middle, top, again
    gc.collect()
    assert seen() is None


def test_long_chains_are_freed_without_recursion(make: Make) -> None:
    text = """(module (import "h" "f" (func $f (param i32) (result i32)))
      (func (export "f") (param i32) (result i32) (call $f (local.get 0))))"""
    module = gb.Module.from_wat(text)
    exports: Any = {"f": lambda x: x + 1}
    for _ in range(5000):
        exports = module.instantiate({"h": exports}).exports
    assert exports.f(1) == 2
    del exports
    gc.collect()


# ---------------------------------------------------------------- circles through Python


def circle_through_host_function(make: Make) -> Any:
    class Host:
        def f(self, item: Any) -> Any:
            return self.instance.exports.id(item)

        instance: gb.Instance

    host = Host()
    host.instance = make(HOLDER, {"env": {"f": host.f}})
    assert host.instance.exports["pass"](host) is host
    return host


def circle_through_table(make: Make) -> Any:
    instance = make(HOLDER, {"env": {"f": identity}})
    item: Any = Item()
    item.function = instance.exports.double
    instance.exports.set(3, item)
    return item


def circle_through_view(make: Make) -> Any:
    instance = make(HOLDER, {"env": {"f": identity}})
    item: Any = Item()
    item.view = instance.exports.memory.view
    instance.exports.set_global(item)
    return item


def circle_through_call(make: Make) -> Any:
    instance = make(HOLDER, {"env": {"f": identity}})
    item: Any = Item()
    item.call = instance.exports.id.start(item)
    return item


def circle_of_two_instances(make: Make) -> Any:
    class Host:
        exports: Any = None

        def f(self, item: Any) -> Any:
            return self.exports.id(item)

    first, second = Host(), Host()
    first.exports = make(HOLDER, {"env": {"f": second.f}}).exports
    second.exports = make(HOLDER, {"env": {"f": first.f}}).exports
    first.exports.set(0, second)
    return first


CIRCLES = [
    circle_through_host_function,
    circle_through_table,
    circle_through_view,
    circle_through_call,
    circle_of_two_instances,
]


@pytest.mark.parametrize("build", CIRCLES)
def test_circles_are_collected(make: Make, build: Callable[[Make], Any]) -> None:
    gc.collect()
    kept = build(make)
    seen = weakref.ref(kept)
    gc.collect()
    assert seen() is kept
    del kept
    gc.collect()
    assert seen() is None


def test_finalisers_in_a_circle_may_still_call(make: Make) -> None:
    results: list[int] = []

    class Host:
        exports: Any

        def f(self, item: Any) -> Any:
            return item

        def __del__(self) -> None:
            results.append(self.exports.double(21))

    host = Host()
    host.exports = make(HOLDER, {"env": {"f": host.f}}).exports
    del host
    gc.collect()
    assert results == [42]


# ---------------------------------------------------------------- leaks


def resident() -> int:
    """Resident memory in KiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


def test_ten_thousand_instances(make: Make) -> None:
    module = gb.Module.from_wat(HOLDER)

    def once() -> None:
        exports = module.instantiate({"env": {"f": identity}}).exports
        exports.memory.write(0, b"x")
        exports.set(1, Item())
        assert exports.double(3) == 6

    for _ in range(1000):
        once()
    gc.collect()
    before, mapped = resident(), mappings()
    for _ in range(9000):
        once()
    gc.collect()
    assert resident() - before < 2000
    assert mappings() - mapped < 20


def test_modules_are_given_back() -> None:
    data = gb.Module.from_wat(HOLDER).description.data

    def once() -> None:
        exports = gb.Module(data).instantiate({"env": {"f": identity}}).exports
        assert exports.double(3) == 6

    for _ in range(200):
        once()
    gc.collect()
    before = resident()
    for _ in range(2000):
        once()
    gc.collect()
    assert resident() - before < 2000


def test_errors_do_not_leak(make: Make) -> None:
    module = gb.Module.from_wat(HOLDER)
    exports = module.instantiate({"env": {"f": identity}}).exports

    def once() -> None:
        for wrong in ((), (1, 2), ("x",)):
            with pytest.raises(TypeError):
                exports.double(*wrong)
        with pytest.raises(gb.LinkError):
            module.instantiate({"env": {"f": 3}})
        with pytest.raises(gb.CompileError):
            gb.Module(b"\0asm\1\0\0\0\1")
        with pytest.raises(gb.Trap):
            exports.call(3, 3)

    for _ in range(100):
        once()
    gc.collect()
    before = resident()
    for _ in range(1000):
        once()
    gc.collect()
    assert resident() - before < 2000
