"""Machines: what is compiled for, and the calling convention that keeps a handler's arguments in registers on each.

    target                    handlers        why
    x86-64 System V, Windows  preserve_nonecc twelve integer registers, nothing callee-saved but rsp and rbp
    AArch64                   preserve_nonecc twenty-six were seen to work
    anything else             tailcc          guarantees the tail call; the first few arguments are in registers

x86-64 objects come at two levels of the psABI, v2 and v3, and the machine's best is chosen where it is loaded.
"""

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from greenbeat.native.records import record

if TYPE_CHECKING:
    import llvmlite.binding as llvm


def _llvm() -> Any:
    """LLVM, imported when it is needed: a start from an image does without."""
    import llvmlite.binding

    return llvmlite.binding


def handler_convention(triple: str) -> str:
    """The calling convention of interpreter handlers on a target."""
    return "preserve_nonecc" if triple.split("-")[0] in ("x86_64", "aarch64", "arm64") else "tailcc"


_told: list[str] = []


def compile_for(triple: str) -> None:
    """Say what this process compiles for, if not for itself; before modules that ask `target_triple` are imported."""
    _told[:] = [triple]


def target_triple() -> str:
    """What this process compiles for, as LLVM's triple."""
    return _told[0] if _told else str(_llvm().get_process_triple())


@record(frozen=True)
class Machine:
    """A processor to compile for: LLVM's triple, processor name and extra features."""

    triple: str
    processor: str
    features: str = ""

    @property
    def name(self) -> str:
        """A name for files: `x86_64-linux-x86-64-v3`."""
        parts = self.triple.split("-")
        return "-".join([parts[0], "linux" if "linux" in parts else parts[-1], self.processor])

    def create(self) -> "llvm.TargetMachine":
        """LLVM's target machine, position independent, small code model."""
        initialize()
        target = _llvm().Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.processor, features=self.features, opt=2, reloc="pic", codemodel="small"
        )


@lru_cache(maxsize=1)
def initialize() -> None:
    """Make LLVM ready for this machine; the assembly parser is needed by inline assembly."""
    _llvm().initialize_native_target()
    _llvm().initialize_native_asmprinter()
    _llvm().initialize_native_asmparser()


LEVEL_3 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")


@lru_cache(maxsize=1)
def host_machine() -> Machine:
    """This machine, at the best level that objects are made for."""
    machines = shipped_machines()
    if len(machines) == 1:
        return machines[0]
    features = _llvm().get_host_cpu_features()
    return machines[all(features.get(f) for f in LEVEL_3)]


def shipped_machines() -> list[Machine]:
    """The machines of this platform that objects are made for, the oldest first."""
    triple = _llvm().get_process_triple()
    if triple.startswith("x86_64"):
        return [Machine(triple, "x86-64-v2"), Machine(triple, "x86-64-v3")]
    return [Machine(triple, "apple-m1" if sys.platform == "darwin" else "generic")]
