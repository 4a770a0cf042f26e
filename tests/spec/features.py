"""What of the official suite is for later, in one place: whole files by proposal, and single commands with reasons.

A file belongs to a proposal when its name matches one of the proposal's patterns, relative to the suite. Files of the
core directory that no pattern matches are ours, except for the commands listed in `LATER_COMMANDS`.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from tests.spec.suite import SUITE, scripts

LATER_FILES: dict[str, list[str]] = {
    "simd": ["simd_*.wast"],
    "relaxed-simd": ["*_relaxed_*.wast", "relaxed_*.wast"],
    "exceptions": ["tag.wast", "throw.wast", "throw_ref.wast", "try_table.wast"],
    "gc": [
        "array.wast",
        "array_*.wast",
        "binary-gc.wast",
        "br_on_cast*.wast",
        "extern.wast",
        "i31.wast",
        "ref_cast.wast",
        "ref_eq.wast",
        "ref_test.wast",
        "struct.wast",
        "type-canon.wast",
        "type-rec.wast",
        "type-subtyping.wast",
    ],
    "threads": ["proposals/threads/*.wast"],
    "custom-page-sizes": ["proposals/custom-page-sizes/*.wast"],
    "wide-arithmetic": ["proposals/wide-arithmetic/*.wast"],
    "custom-descriptors": ["proposals/custom-descriptors/*.wast"],
    "legacy-exceptions": ["legacy/*.wast"],
    "custom-annotations": ["custom/*.wast"],
}


def feature_of(path: Path) -> str | None:
    """The proposal a script of the suite belongs to, or None when it is ours now."""
    name = path.relative_to(SUITE).as_posix()
    for feature, patterns in LATER_FILES.items():
        if any(fnmatch(name, pattern) for pattern in patterns):
            return feature
    return None


def text_files() -> list[Path]:
    """The scripts whose text we assemble: all of the core directory, later features included."""
    return scripts()
