"""`greenbeat.inspect`: lines of kernels with the LLVM IR and the assembly that came from them."""

import pytest

import greenbeat as gb
from greenbeat.disassembly.kernels import InspectedLine, Inspection
from greenbeat.native.targets import target_triple

X86 = target_triple().startswith("x86_64")


@gb.kernel
def mean(left: float, right: float) -> float:
    total = left + right
    return total / 2.0


@gb.kernel
def sums(a: gb.Array[gb.f64]) -> float:
    total = 0.0
    for i in range(len(a)):
        total += mean(a[i], 1.0)
    return total


@gb.kernel
def squares(n: int) -> int:
    total = 0
    for i in gb.prange(n):
        total += i * i % 7
    return total


def line(found: Inspection, text: str) -> InspectedLine:
    (chosen,) = [each for each in found.lines if each.text.strip() == text]
    return chosen


def test_the_lines_of_a_kernel() -> None:
    found = gb.inspect(mean)
    assert found.name == "mean"
    assert [each.text for each in found.lines][:2] == ["@gb.kernel", "def mean(left: float, right: float) -> float:"]
    assert any("fadd double" in each for each in line(found, "total = left + right").llvm)
    result = line(found, "return total / 2.0")
    assert any("fmul double" in each or "fdiv double" in each for each in result.llvm)
    if X86:
        assert any(each.split()[0].endswith("addsd") for each in line(found, "total = left + right").assembly)
        assert any(each.split()[0].endswith(("mulsd", "divsd")) for each in result.assembly)
    first = mean._function.first_line
    assert [each.number for each in found.lines] == list(range(first, first + 4))


def test_the_text_has_all_of_it() -> None:
    found = gb.inspect(mean)
    text = str(found)
    for each in found.lines:
        assert f"{each.number} │ {each.text}" in text
        for part in (*each.llvm, *each.assembly):
            assert part in text


def test_whole_code_without_tables_of_lines() -> None:
    found = gb.inspect(mean)
    for text in ("!dbg", "DILocation", "source_filename"):
        assert text not in found.llvm
    for text in (".loc", ".debug", ".cfi", "Ltmp"):
        assert text not in found.assembly
    assert "define void @thunk" in found.llvm and "thunk:" in found.assembly


def test_a_kernel_that_became_part_of_another() -> None:
    found = gb.inspect(sums)
    assert any("fadd double" in each for each in line(found, "total = left + right").llvm)
    assert [each.text for each in found.lines][1].startswith("def sums")
    assert line(found, "total += mean(a[i], 1.0)").llvm


def test_a_parallel_loop() -> None:
    found = gb.inspect(squares)
    assert any("mul i64" in each for each in line(found, "total += i * i % 7").llvm)
    if X86:
        assert any(each.startswith("imul") for each in line(found, "total += i * i % 7").assembly)


def test_it_is_compiled_to_the_same_code() -> None:
    from greenbeat.engine import engine
    from greenbeat.kernels.compiler import OPTIONS, kernel_text
    from greenbeat.native.build import explain_text

    def instructions(text: str) -> list[str]:
        return [each.strip() for each in text.splitlines() if each.startswith("\t") and not each.startswith("\t.")]

    _, plain = explain_text(kernel_text(squares._function), engine.machine, **OPTIONS)
    _, debug = explain_text(kernel_text(squares._function, debug=True), engine.machine, **OPTIONS)
    assert instructions(plain) == instructions(debug)


def test_mistakes() -> None:
    with pytest.raises(TypeError, match="inspect takes a kernel, not function"):
        gb.inspect(lambda: None)  # type: ignore[arg-type]

    @gb.kernel
    def wrong(n: int) -> int:
        return n / 2  # type: ignore[return-value]

    with pytest.raises(gb.KernelError, match="wrong returns i64, but this is f64"):
        gb.inspect(wrong)
