"""Where the modules come from: packages that happen to be installed.

Nothing is downloaded and nothing is copied into the project. A test whose package is missing is skipped, and says how
to install it. Packages of Python are found as Python finds them. Packages of npm are found as Node finds them: in the
`node_modules` of this folder or of any folder above it, then in the folders that `NODE_PATH` lists. So either of these
will do:

    npm install source-map blake3-wasm@2                   (in the project's root)
    npm install --prefix FOLDER source-map blake3-wasm@2   (and NODE_PATH=FOLDER/node_modules)

Two versions of a package can be tested in one run when `NODE_PATH` lists a folder for each.
"""

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest


def node_folders() -> Iterator[Path]:
    """Every `node_modules` that may hold packages, the nearest first."""
    for folder in Path(__file__).resolve().parents:
        yield folder / "node_modules"
    for entry in os.environ.get("NODE_PATH", "").split(os.pathsep):
        if entry:
            yield Path(entry)


def from_npm(package: str, file: str) -> bytes:
    """A file of an npm package, named as for `npm install`; skips the test if there is none."""
    name = package.partition("@")[0]
    for folder in node_folders():
        path = folder / name / file
        if path.exists():
            return path.read_bytes()
    pytest.skip(f"no node_modules has {name}/{file}: npm install {package}")


def from_pypi(distribution: str, package: str, file: str) -> bytes:
    """A file of a Python package; skips the test if there is none."""
    specification = importlib.util.find_spec(package)
    if specification is None or specification.origin is None:
        pytest.skip(f"{distribution} is not installed: pip install {distribution}")
    path = Path(specification.origin).parent / file
    if not path.exists():
        pytest.skip(f"the installed {distribution} has no {file}")
    return path.read_bytes()


def from_distribution(distribution: str, file: str) -> bytes:
    """A file of a Python distribution that is data only, without a package; skips the test if there is none."""
    try:
        path = Path(str(importlib.metadata.distribution(distribution).locate_file(file)))
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{distribution} is not installed: pip install {distribution}")
    if not path.exists():
        pytest.skip(f"the installed {distribution} has no {file}")
    return path.read_bytes()


def folder_of(package: str, folder: str) -> dict[str, bytes]:
    """The files in a folder of a Python package that is installed, by their names in the package."""
    specification = importlib.util.find_spec(package)
    assert specification is not None and specification.origin is not None
    top = Path(specification.origin).parent
    return {str(path.relative_to(top)): path.read_bytes() for path in (top / folder).rglob("*") if path.is_file()}
