"""Cases: a kind, a seed and a number make a module, and the way to check it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz import differential, hazard_modules, mutation, smith

_GENERATORS: dict[str, Callable[[random.Random], bytes | None]] = {
    "smith": smith.generate,
    "hazards": hazard_modules.generate,
    "mutants": mutation.generate,
}
KINDS = tuple(_GENERATORS)


@dataclass(frozen=True)
class Case:
    """One case. Written `kind:seed:number`."""

    kind: str
    seed: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Case:
        """A case from its text.

        Raises:
            ValueError: it is none.
        """
        kind, seed, number = text.split(":")
        if kind not in KINDS:
            raise ValueError(f"no kind of case: {kind}")
        return cls(kind, int(seed), int(number))

    def __str__(self) -> str:
        return f"{self.kind}:{self.seed}:{self.number}"

    def module(self) -> bytes | None:
        """Its module; None if chance made none."""
        return _GENERATORS[self.kind](random.Random(str(self)))

    def check(self, data: bytes) -> str:
        """Run it; returns a word about it.

        Raises:
            differential.Difference, mutation.Escaped: it is a finding.
        """
        return check(self.kind, data, str(self))


def check(kind: str, data: bytes, seed: str) -> str:
    """Run a module as a case of a kind; see `Case.check`."""
    return mutation.check(data, seed) if kind == "mutants" else differential.check(data, seed)


FINDINGS = (differential.Difference, mutation.Escaped)
