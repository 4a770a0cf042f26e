"""Cells by name: what a function is translated to."""

from greenbeat import Module
from greenbeat.disassembly.cells import WORD, cells, handler_names, translated
from greenbeat.runtime.layout import METERED

LOOP = """
(module (func (param $n i32) (result i32) (local $sum i32)
  (loop $again
    (local.set $sum (i32.add (local.get $sum) (local.get $n)))
    (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
  (local.get $sum)))
"""


def test_a_loop() -> None:
    module = Module.from_wat(LOOP)
    code = translated(module.description.address, 0)
    found = list(cells(code))
    assert [cell.handler.partition(".")[0] for cell in found][-1] == "return"
    assert any(cell.handler.startswith("i32.add.") for cell in found)
    assert any(cell.handler.startswith("br_") for cell in found)
    # The cells follow each other without a gap.
    ends = [cell.offset + WORD + 4 * len(cell.operands) for cell in found]
    assert [0, *ends] == [*(cell.offset for cell in found), len(code)]
    assert "?" not in [cell.handler for cell in found]


def test_variants_are_translated_each() -> None:
    module = Module.from_wat(LOOP)
    metered = list(cells(translated(module.description.address, 0, METERED)))
    assert "charge" in [cell.handler for cell in metered]
    assert "charge" not in [cell.handler for cell in cells(translated(module.description.address, 0))]


def test_every_handler_has_a_name() -> None:
    names = handler_names()
    assert len(names) > 1000
    assert all(names.values())
