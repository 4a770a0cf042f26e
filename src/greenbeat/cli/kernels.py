"""Kernels on the command line: `FILE.py:KERNEL`. The file is imported, as Python would."""

import dataclasses
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

from greenbeat.cli.failures import FAILED, NOT_FOUND, NOT_RUNNABLE, USAGE, CommandError
from greenbeat.cli.terminal import safe

_NAMED = re.compile(r"(.+\.py):([\w.]+)")


def named_kernel(word: str) -> tuple[str, str] | None:
    """The file and the kernel that a word names, if it does."""
    found = _NAMED.fullmatch(word)
    return (found[1], found[2]) if found else None


def inspect_kernel(file: str, name: str, *, as_json: bool) -> int:
    """Print what a kernel was compiled to."""
    from greenbeat import KernelError, inspect

    kernel = _kernel(file, name)
    try:
        found = inspect(kernel)
    except KernelError as error:
        raise CommandError(safe(str(error)), FAILED) from None
    print(json.dumps(dataclasses.asdict(found), indent=2) if as_json else found)
    return 0


def _kernel(file: str, name: str) -> Any:
    from greenbeat import Kernel

    if not Path(file).is_file():
        raise CommandError(f"{safe(file)}: there is no such file", NOT_FOUND)
    stem = Path(file).stem
    spec = importlib.util.spec_from_file_location(stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise CommandError(f"{safe(file)}: it cannot be imported: {safe(what)}", NOT_RUNNABLE) from None
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Kernel):
        kernels = [each for each, value in vars(module).items() if isinstance(value, Kernel)]
        known = f"it has {', '.join(kernels)}" if kernels else "it has none"
        raise CommandError(f"{safe(file)} has no kernel {safe(name)}: {known}", USAGE)
    return found
