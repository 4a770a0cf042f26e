from pathlib import Path

import pytest

from .command import Command

PROGRAM = """
(module $tour
  (func $div (export "div") (param $a i32) (param $b i32) (result i32)
    (i32.div_s (local.get $a) (local.get $b)))
  (func (export "floats") (param f32 f64) (result f32 f64)
    (f32.add (local.get 0) (f32.const 0.1)) (f64.mul (local.get 1) (f64.const 2)))
  (func (export "same") (param i64) (result i64) (local.get 0))
  (func (export "spin") (loop $l (br $l)))
  (func $deep (export "deep") (call $deep))
  (func (export "take") (param externref))
  (func (export "give") (result externref) (ref.null extern))
  (memory (export "memory") 2))
"""


@pytest.fixture
def greenbeat(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command line."""
    return Command(capsys)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A module with a function for most of what can happen."""
    path = tmp_path / "tour.wat"
    path.write_text(PROGRAM)
    return path
