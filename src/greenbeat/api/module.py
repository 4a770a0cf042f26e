"""`greenbeat.Module`: a WebAssembly module, decoded and validated, ready to be instantiated many times."""

import ctypes
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from greenbeat.api import bridge
from greenbeat.api.checks import described
from greenbeat.api.content import Content
from greenbeat.api.limits import Limits
from greenbeat.api.translations import Translations, Users, translations_of
from greenbeat.errors import CompileError
from greenbeat.wasm.description import Description, ExportType, ImportType, describe_failure
from greenbeat.wasm.reader import MALFORMED, Failure

if TYPE_CHECKING:
    from greenbeat.api.instance import Instance
    from greenbeat.wasi.config import Wasi

_MODULE = 5  # the kind of resource in greenbeat.runtime.groups

# The descriptions of modules that are alive, by the address of the native module.
_descriptions: "WeakValueDictionary[int, Description]" = WeakValueDictionary()


def description_of(address: int) -> Description | None:
    """The description of the native module at an address, if a Python object still has it."""
    return _descriptions.get(address)


class Module(bridge.Handle):
    """A module: `Module(data)`, `Module.from_file(path)`, `Module.from_wat(text)`.

    Args:
        data: the module in the binary format, any bytes-like object.
        cache: whether a large module's validation and translation are kept in the user's cache directory, for the
            processes that use the same module later.

    Raises:
        CompileError: it is malformed or invalid; `offset` says where.
    """

    __slots__ = ("_description", "_translations", "_users")
    _description: Description
    _translations: Translations | None
    _users: Users | None

    def __new__(cls, data: Any, *, cache: bool = False) -> "Module":
        if isinstance(data, str):
            raise TypeError("a module is bytes; text is for Module.from_wat")
        try:
            content = data if type(data) is bytes else memoryview(data).tobytes()
        except TypeError:
            raise TypeError(f"a module is a bytes-like object, not {described(data)}") from None
        return cls._from_content(Content(content, kept=cache))

    @classmethod
    def _from_content(cls, given: Content) -> "Module":
        content = given.data
        translations = translations_of(given) if given.digest else None
        failure = bridge.structure(Failure)()
        known = translations is not None and translations.known
        group = bridge.native.new_group()
        at, kept = bridge.address_of_buffer(content)
        bridge.native.keep(group, kept)
        address = bridge.native.decode_module(at, len(content), ctypes.addressof(failure), known)
        if not address:
            message, offset, function = describe_failure(failure)
            raise CompileError(message, offset, function, malformed=failure.kind == MALFORMED)
        bridge.native.adopt(group, _MODULE, address)
        module: Module = bridge.native.new_handle(cls, group, address)
        module._description = _descriptions[address] = Description(address, content, complete=given.complete)
        # Names are asked for as long as instances live, even when this object is gone.
        bridge.native.keep(group, module._description)
        module._translations = translations
        module._users = translations.attach(group, address) if translations is not None else None
        return module

    def _save_translations(self) -> None:
        """Let later processes have what was translated so far."""
        if self._translations is not None:
            self._translations.save(bridge.address_of(self))

    @property
    def description(self) -> Description:
        """All that it declares; the module lives as long as this does."""
        known = self._description
        return Description(known.address, known.data, owner=self, complete=known.complete)

    @classmethod
    def from_file(cls, path: "str | os.PathLike[str]", *, cache: bool = True) -> "Module":
        """Read a module from a `.wasm` file, or from a text file whose name ends in `.wat`.

        Args:
            path: the file.
            cache: see `Module`; here it is the default.
        """
        is_text = os.fsdecode(path).endswith(".wat")
        content = Content(file=os.open(path, os.O_RDONLY | os.O_CLOEXEC), kept=cache and not is_text)
        return cls.from_wat(bytes(content.data)) if is_text else cls._from_content(content)

    @classmethod
    def from_wat(cls, text: str | bytes) -> "Module":
        """A module from the text format; bytes are UTF-8.

        Raises:
            CompileError: the text is malformed, or the module invalid.
        """
        from greenbeat.wasm.text import TextError, assemble

        if not isinstance(text, str | bytes):
            raise TypeError(f"the text of a module is a str, not {described(text)}")
        try:
            data = assemble(text)
        except TextError as error:
            raise CompileError(str(error), malformed=True) from error
        return cls(data)

    @property
    def imports(self) -> tuple[ImportType, ...]:
        """What the module needs, in order."""
        return self._description.imports

    @property
    def exports(self) -> tuple[ExportType, ...]:
        """What its instances offer, in order."""
        return self._description.exports

    @property
    def name(self) -> str | None:
        """Its name, if its name section tells one."""
        return self._description.names.module

    def custom_sections(self, name: str) -> list[bytes]:
        """The contents of the custom sections with a name."""
        return list(self._description.custom_sections(name))

    def instantiate(
        self,
        imports: Mapping[str, Any] | None = None,
        *,
        wasi: "Wasi | None" = None,
        limits: Limits | None = None,
    ) -> "Instance":
        """Make an instance and run its start function.

        Args:
            imports: by module name, then by name: callables, `Function`, `Memory`, `Table`, `Global` objects, numbers
                for constant globals. An `Instance` or its `exports` may stand for a whole module.
            wasi: what a WASI program gets to see of the world; the functions of WASI that it imports are given to it.
                `wasi.start(instance)` then runs a command; a library has been initialized.
            limits: what the instance may use.

        Raises:
            LinkError: an import is missing or of another type.
            Exhausted: a limit does not let it start.
            Trap: a segment does not fit, or the start function trapped.
        """
        if wasi is not None:
            from greenbeat.wasi.config import Wasi

            if not isinstance(wasi, Wasi):
                raise TypeError(f"wasi must be a greenbeat.Wasi, not {described(wasi)}")
            return wasi.instantiate(self, {} if imports is None else imports, Limits() if limits is None else limits)
        from greenbeat.api.instance import instantiate

        return instantiate(self, {} if imports is None else imports, Limits() if limits is None else limits)

    def __repr__(self) -> str:
        return f"<greenbeat.Module{str(self._description).removeprefix('<module')}"


__all__ = ["Module", "description_of"]
