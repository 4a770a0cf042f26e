r"""The WebAssembly text format, turned into the binary format (specification, Text Format).

A module's way through this room: `lexer` cuts the text into tokens, `cursor` reads them, `module` walks over the
fields twice (names first), with `types`, `expressions` and `segments` for what is inside them; `instructions` is the
table of all instructions and `immediates` knows what follows their names; `numbers` reads literals exactly; `scope`
holds the names; `encode` knows the binary format. Nothing is kept between the text and the bytes: each construct is
encoded as soon as it is read.

>>> assemble("(module)")
b'\\x00asm\\x01\\x00\\x00\\x00'
"""

from __future__ import annotations

from .cursor import Cursor
from .errors import TextError
from .lexer import tokenize
from .module import ModuleParser

__all__ = ["TextError", "assemble"]


def assemble(source: str | bytes) -> bytes:
    """Turn the text of one module, `(module ...)` or only its fields, into a binary (Modules)."""
    cursor = Cursor(tokenize(source))
    if cursor.try_open("module"):
        binary = ModuleParser(cursor).module()
        cursor.take_close()
    else:
        binary = ModuleParser(cursor).fields()
    if cursor.texts[cursor.position]:
        raise cursor.unexpected("nothing more behind the module")
    return binary
