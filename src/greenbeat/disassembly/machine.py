"""What a handler costs, read off the assembly that LLVM wrote for it.

The path that counts is the hot one, from a handler's entry to its dispatch: the indirect jump to the next cell's
handler. The rule, since assembly does not say what is hot: follow the code as it lies; where a conditional jump stands,
its fall-through is tried first, and the jump's target only if the fall-through cannot reach a dispatch. LLVM lays out
likely blocks as fall-throughs and unlikely ones (traps, polls, slow calls) behind a jump, so this is its own idea of
the hot path. Direct jumps are followed, also into another handler, unless that one is marked cold and another way is
left. A called function counts as the one call instruction.

    instructions     on that path, the dispatch included
    stack operands   memory operands relative to the stack pointer; a pair of registers counts as two
    pushes and pops  also as AArch64 writes them: a store or load that moves the stack pointer, two for a pair
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

_LABEL = re.compile(r'^"?([^\s"#;]+)"?:')
_X86_COMMENT, _ARM_COMMENT = re.compile(r"\s#.*$"), re.compile(r"\s(?://|;).*$")
_X86_CONDITION = re.compile(r"j(?!mp)[a-z]+$")
_ARM_CONDITIONS = ("b.", "cbz", "cbnz", "tbz", "tbnz")
_PAIRS = ("ldp", "stp", "ldnp", "stnp")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one dispatch of a handler costs."""

    instructions: int
    stack_operands: int
    pushes_and_pops: int


@dataclass(frozen=True, slots=True)
class _Instruction:
    mnemonic: str
    operands: str


class Assembly:
    """The assembly of one object, AT&T syntax for x86-64.

    Args:
        text: what LLVM wrote.
        x86: for x86-64; otherwise for AArch64.
        cold: symbols of functions that are off the path.
    """

    def __init__(self, text: str, x86: bool, cold: Collection[str] = ()) -> None:
        self.x86 = x86
        self.instructions: list[_Instruction] = []
        self.labels: dict[str, int] = {}
        comment = _X86_COMMENT if x86 else _ARM_COMMENT
        for line in text.splitlines():
            label = _LABEL.match(line)
            if label:
                self.labels[label[1]] = len(self.instructions)
                continue
            words = comment.sub("", line).strip().split(None, 1)
            if not line[:1].isspace() or not words or words[0][0] in ".#;/":
                continue
            if words[0] == "rex64":
                words = words[1].split(None, 1)
            self.instructions.append(_Instruction(words[0], words[1] if len(words) > 1 else ""))
        self.cold = {self.labels[symbol] for symbol in cold if symbol in self.labels}

    def cost(self, symbol: str) -> Cost | None:
        """The cost of the hot path of a handler; None if it never dispatches, like those that end the run."""
        start = self.labels[symbol]
        path = self._path(start, self.cold - {start}) or self._path(start, set())
        if path is None:
            return None
        return Cost(len(path), sum(map(self._stack_operands, path)), sum(map(self._pushes, path)))

    def _path(self, start: int, avoid: set[int]) -> list[_Instruction] | None:
        """The hot path: a depth-first search for a dispatch, fall-throughs first, that enters no instruction twice."""
        seen = set(avoid)
        # Where to go on, and how long the path was there.
        waiting = [(start, 0)]
        path: list[_Instruction] = []
        while waiting:
            position, length = waiting.pop()
            del path[length:]
            while position not in seen and position < len(self.instructions):
                seen.add(position)
                instruction = self.instructions[position]
                path.append(instruction)
                if self._dispatches(instruction):
                    return path
                if self._ends(instruction):
                    break
                target = self.labels.get(instruction.operands.rpartition(",")[2].strip().strip('"'))
                if self._jumps(instruction):
                    if target is None:
                        break
                    position = target
                    continue
                if target is not None and self._branches(instruction):
                    waiting.append((target, len(path)))
                position += 1
        return None

    def _dispatches(self, instruction: _Instruction) -> bool:
        if self.x86:
            return instruction.mnemonic.startswith("jmp") and instruction.operands.startswith("*")
        return instruction.mnemonic == "br"

    def _jumps(self, instruction: _Instruction) -> bool:
        return instruction.mnemonic.startswith("jmp") if self.x86 else instruction.mnemonic == "b"

    def _branches(self, instruction: _Instruction) -> bool:
        if self.x86:
            return _X86_CONDITION.match(instruction.mnemonic) is not None
        return instruction.mnemonic.startswith(_ARM_CONDITIONS)

    def _ends(self, instruction: _Instruction) -> bool:
        return instruction.mnemonic.startswith(("ret", "ud2", "brk", "int3", "hlt"))

    def _pushes(self, instruction: _Instruction) -> int:
        if self.x86:
            return int(instruction.mnemonic.startswith(("push", "pop")))
        moves = "[sp" in instruction.operands and re.search(r"\[sp, [^\]]*\]!|\[sp\],", instruction.operands)
        return (2 if instruction.mnemonic in _PAIRS else 1) if moves else 0

    def _stack_operands(self, instruction: _Instruction) -> int:
        if self.x86:
            return int("(%rsp" in instruction.operands and not instruction.mnemonic.startswith("lea"))
        if "[sp" not in instruction.operands or self._pushes(instruction):
            return 0
        return 2 if instruction.mnemonic in _PAIRS else 1
