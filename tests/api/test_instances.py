"""Modules and instances: imports, exports, linking, closing, limits at instantiation."""

from pathlib import Path
from typing import Any

import pytest

import greenbeat as gb
from tests.api.conftest import Make

COUNTER = """(module
  (global $n (mut i32) (i32.const 0))
  (func (export "next") (result i32) (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))
  (memory (export "memory") 1 3)
  (table (export "table") 2 5 funcref)
  (global (export "constant") i32 (i32.const 7))
  (global (export "variable") (mut i64) (i64.const 8))
  (func (export "with-dash")) (func (export "keys")) (func (export "1")))"""


def test_module(tmp_path: Path) -> None:
    module = gb.Module.from_wat('(module $name (import "a" "b" (func (param i32))) (memory (export "m") 1))')
    assert [(i.module, i.name, str(i.type)) for i in module.imports] == [("a", "b", "(func (param i32))")]
    assert [(e.name, str(e.type)) for e in module.exports] == [("m", "(memory 1)")]
    assert repr(module).startswith("<greenbeat.Module")
    (tmp_path / "empty.wasm").write_bytes(b"\0asm\1\0\0\0")
    (tmp_path / "empty.wat").write_text('(module (func (export "f")))')
    assert gb.Module.from_file(tmp_path / "empty.wasm").exports == ()
    assert len(gb.Module.from_file(str(tmp_path / "empty.wat")).exports) == 1
    assert gb.Module(bytearray(b"\0asm\1\0\0\0")).imports == ()


@pytest.mark.parametrize("data", [b"", b"\0asm", b"\0asm\2\0\0\0", b"\0asm\1\0\0\0\x01"])
def test_malformed(data: bytes) -> None:
    with pytest.raises(gb.CompileError) as caught:
        gb.Module(data)
    assert caught.value.offset is not None
    assert "offset 0x" in str(caught.value)


def test_invalid_body_names_the_function() -> None:
    with pytest.raises(gb.CompileError, match="in function 1, at offset 0x") as caught:
        gb.Module.from_wat("(module (func) (func (result i32) i64.const 1))")
    assert caught.value.function == 1
    with pytest.raises(gb.CompileError):
        gb.Module.from_wat("(module (fun))")
    for wrong in ("(module)", 8, None):
        with pytest.raises(TypeError):
            gb.Module(wrong)


def test_exports(make: Make) -> None:
    instance = make(COUNTER)
    exports = instance.exports
    assert [exports.next(), exports["next"](), exports.next()] == [1, 2, 3]
    assert list(exports)[:3] == ["next", "memory", "table"] and len(exports) == 8
    assert "with-dash" in exports and "nothing" not in exports
    assert exports["with-dash"]() is None and exports["1"]() is None and exports["keys"]() is None
    assert exports.memory is exports["memory"] and exports.next is exports.next
    with pytest.raises(AttributeError, match="exports no 'nothing'; it exports: next, memory"):
        _ = exports.nothing
    with pytest.raises(KeyError):
        exports["nothing"]
    with pytest.raises(AttributeError):
        exports.next = 3
    assert exports.keys() is None and dict(exports.items())["next"] is exports.next
    assert "next" in repr(instance) and "next(" in repr(exports)
    with pytest.raises(TypeError):
        gb.Instance()


def test_close(make: Make) -> None:
    with make(COUNTER) as instance:
        call, view = instance.exports.next, instance.exports.memory.view
        assert call() == 1
    assert instance.closed
    with pytest.raises(gb.GreenbeatError, match="closed"):
        call()
    with pytest.raises(gb.GreenbeatError, match="closed"):
        call.start().resume()
    view[0] = 5
    assert instance.exports.memory.read(0, 1) == b"\5"
    instance.close()


def test_close_while_it_runs(make: Make) -> None:
    text = """(module (import "e" "f" (func $f)) (func (export "go") (result i32) (call $f) (i32.const 3)))"""
    instance: gb.Instance = make(text, {"e": {"f": lambda: instance.close()}})
    assert instance.exports.go() == 3
    assert instance.closed


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ({}, 'no module "env" among the imports'),
        ({"env": {}}, "nothing of that name"),
        ({"env": 3}, "int 3 in place of the module's names"),
        ({"env": {"it": 3}}, "int 3"),
        ({"env": {"it": gb.Function(lambda: None, [], [])}}, r"\(func\)"),
    ],
)
def test_link_errors(imports: Any, found: str) -> None:
    module = gb.Module.from_wat('(module (import "env" "it" (func (param i32) (result i64))))')
    with pytest.raises(gb.LinkError, match=found) as caught:
        module.instantiate(imports)
    error = caught.value
    assert (error.module, error.name, error.expected) == ("env", "it", "(func (param i32) (result i64))")


def test_a_number_for_a_mutable_global() -> None:
    module = gb.Module.from_wat('(module (import "env" "it" (global (mut i32))))')
    with pytest.raises(gb.LinkError, match=r"found int 3: a mutable global must be a greenbeat\.Global"):
        module.instantiate({"env": {"it": 3}})


def test_memory_imports(make: Make) -> None:
    for wanted, fits in (("1", True), ("1 9", True), ("1 8", False), ("2", False), ("0 9", True), ("i64 1", False)):
        module = gb.Module.from_wat(f'(module (import "e" "m" (memory {wanted})) (export "m" (memory 0)))')
        memory = gb.Memory(1, 9)
        if fits:
            assert module.instantiate({"e": {"m": memory}}).exports.m is memory
        else:
            with pytest.raises(gb.LinkError, match="found .memory 1 9. of 1 pages"):
                module.instantiate({"e": {"m": memory}})
    with pytest.raises(gb.LinkError):
        make('(module (import "e" "m" (memory 1 9)))', {"e": {"m": gb.Memory(1)}})


def test_table_imports(make: Make) -> None:
    for wanted, fits in (("2 funcref", True), ("2 9 funcref", True), ("2 5 funcref", False), ("2 externref", False)):
        text = f'(module (import "e" "t" (table {wanted})) (export "t" (table 0)))'
        table = gb.Table("funcref", 3, 9)
        if fits:
            assert make(text, {"e": {"t": table}}).exports.t is table
        else:
            with pytest.raises(gb.LinkError):
                make(text, {"e": {"t": table}})


def test_global_imports(make: Make) -> None:
    text = """(module (import "e" "c" (global $c i32)) (import "e" "v" (global $v (mut f64)))
      (func (export "c") (result i32) (global.get $c)) (func (export "v") (result f64) (global.get $v))
      (func (export "set") (param f64) (global.set $v (local.get 0))))"""
    variable = gb.Global(gb.f64, 0.5, mutable=True)
    exports = make(text, {"e": {"c": 2**32 - 1, "v": variable}}).exports
    assert (exports.c(), exports.v()) == (-1, 0.5)
    exports.set(2.5)
    assert variable.value == 2.5
    variable.value = 4
    assert exports.v() == 4.0
    for given in ("x", True, 1.5, 2**32, gb.Global("i32", 1, mutable=True), gb.Global("i64", 1)):
        with pytest.raises(gb.LinkError):
            make(text, {"e": {"c": given, "v": variable}})
    with pytest.raises(gb.LinkError):
        make(text, {"e": {"c": 1, "v": 1.5}})


def test_linking_instances(make: Make) -> None:
    first = make(COUNTER)
    text = """(module (import "c" "next" (func $next (result i32))) (import "c" "memory" (memory 1))
      (import "c" "variable" (global $v (mut i64)))
      (func (export "twice") (result i32) (i32.add (call $next) (call $next)))
      (func (export "poke") (i32.store8 (i32.const 3) (i32.const 77)) (global.set $v (i64.const 99))))"""
    for given in (first, first.exports, dict(first.exports.items())):
        second = make(text, {"c": given})
        n = first.exports.next()
        assert second.exports.twice() == 2 * n + 3
        second.exports.poke()
        assert first.exports.memory[3] == 77 and first.exports.variable.value == 99


def test_start_function(make: Make) -> None:
    called: list[int] = []
    text = '(module (import "e" "f" (func $f (param i32))) (func $s (call $f (i32.const 5))) (start $s))'
    make(text, {"e": {"f": called.append}})
    assert called == [5]
    with pytest.raises(gb.Trap, match="unreachable"):
        make("(module (func $s unreachable) (start $s))")
    with pytest.raises(gb.Exhausted):
        make("(module (func $s (loop (br 0))) (start $s))", seconds=0.05)
    with pytest.raises(ZeroDivisionError):
        make('(module (import "e" "f" (func $f)) (start $f))', {"e": {"f": lambda: 1 / 0}})


def test_segments_that_do_not_fit(make: Make) -> None:
    with pytest.raises(gb.Trap, match="out of bounds memory access"):
        make('(module (memory 1) (data (i32.const 65535) "ab"))')
    with pytest.raises(gb.Trap, match="out of bounds table access"):
        make("(module (table 1 funcref) (func $f) (elem (i32.const 1) $f))")


def test_limits_at_the_start(make: Make) -> None:
    with pytest.raises(gb.Exhausted, match="memory 0 starts with 196608 bytes: the limit is 131072 bytes") as caught:
        make("(module (memory 3))", memory="128KiB")
    assert caught.value.resource == "memory"
    with pytest.raises(gb.Exhausted, match="memories 0 to 2 start with 196608 bytes: the limit is 131072 bytes"):
        make("(module (memory 1) (memory 1) (memory 1))", memory="128KiB")
    with pytest.raises(gb.Exhausted, match="table 0 starts with 11 elements: the limit is 10"):
        make("(module (table 11 funcref))", table=10)
    with pytest.raises(gb.Exhausted):
        make("(module (memory i64 0x1_0000_0000))")


@pytest.mark.parametrize(
    "bad",
    [
        {"memory": "many"},
        {"memory": -1},
        {"memory": 1.5},
        {"stack": "65MiB"},
        {"stack": 1},
        {"seconds": 0},
        {"fuel": -1},
        {"depth": 0},
        {"table": -1},
    ],
)
def test_limits_that_make_no_sense(bad: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        gb.Limits(**bad)


def test_sizes() -> None:
    assert gb.Limits(memory="64MiB").memory_bytes == 64 << 20
    assert gb.Limits(memory="1.5 GiB").memory_bytes == 3 << 29
    assert gb.Limits(memory="2kB").memory_bytes == 2000
    assert gb.Limits(memory=77).memory_bytes == 77
    assert gb.Limits().stack_bytes == 1 << 20
