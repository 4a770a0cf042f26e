"""The part of a wheel's build that is not copying files: the engine is compiled, so that an installed package need not.

A wheel for x86-64 carries the engine twice, for the levels v2 and v3 of the processor; other wheels carry it for their
platform's usual processor. A wheel works without them, or with an llvmlite they were not made for: then the first use
compiles the engine. An editable install carries nothing, since its sources change.
"""

import importlib
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class EngineBuildHook(BuildHookInterface[Any]):
    """Compiles the engine into a temporary directory that the wheel includes as `greenbeat/_objects`."""

    objects: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and mark the wheel as one for this platform and any Python 3."""
        if version == "editable":
            return
        self.objects = Path(tempfile.mkdtemp(prefix="greenbeat-objects-"))
        self.app.display_info("Compiling the engine")
        load_engine(Path(self.root)).ship(self.objects)
        build_data["force_include"][str(self.objects)] = "greenbeat/_objects"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary directory."""
        if self.objects is not None:
            shutil.rmtree(self.objects, ignore_errors=True)


def load_engine(root: Path) -> Any:
    """The engine as the source tree describes it, without the package's `__init__`, which may ask for it compiled."""
    sys.path.insert(0, str(root / "src"))
    package = ModuleType("greenbeat")
    package.__path__ = [str(root / "src" / "greenbeat")]
    sys.modules["greenbeat"] = package
    return importlib.import_module("greenbeat.engine").engine


def platform_tag() -> str:
    """The wheel's platform. The objects call the C library by names that every supported glibc has."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return tag.replace("linux_", "manylinux_2_17_", 1) if tag.startswith("linux_") else tag
