"""`greenbeat.Function`: what a guest exports, and what a host gives to guests. The type and its call are native code.

    add = instance.exports.add
    add(2, 40)
    twice = gb.Function(lambda x: 2 * x, ["i32"], ["i32"])

Integers come back signed, several results as a tuple.
"""

import ctypes
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from greenbeat.api import bridge, errorhooks
from greenbeat.api.call import Call
from greenbeat.api.checks import described
from greenbeat.api.values import inferred_type, python_type, short, types_of
from greenbeat.runtime import layout
from greenbeat.wasm.description import FunctionType, function_type_at, signature_address
from greenbeat.wasm.printable import printable

_type, _ = bridge.native_types()


def host_callable(address: int) -> Any:
    """The Python callable of a host's FunctionInstance."""
    return ctypes.cast(bridge.at(layout.FunctionInstance, address).python, ctypes.py_object).value


class _Methods:
    """What Python adds to the native type."""

    __slots__ = ()
    _address: int
    _owner: Any

    def __new__(
        cls, callable: Callable[..., Any], params: Iterable[Any] | None = None, results: Iterable[Any] | None = None
    ) -> Any:
        """A host function that guests can import, put into tables and call.

        Args:
            callable: is called with ints, floats and objects; its result must fit `results`.
            params: value types (see `greenbeat.api.values`); by default what the callable's annotations say.
            results: value types too.

        Raises:
            TypeError: it is not callable, or has no types.
        """
        if not builtin_callable(callable):
            raise TypeError(f"a Function is made of a callable, not {described(callable)}")
        if params is None and results is None:
            kind = inferred_type(callable)
        else:
            kind = FunctionType(types_of(params or ()), types_of(results or ()))
        group = bridge.native.new_group()
        address = bridge.native.new_host_function(group, signature_address(kind), callable)
        return bridge.native.wrap_function(address)

    @property
    def type(self) -> FunctionType:
        """Its function type."""
        return function_type_at(_instance(self).signature)

    @property
    def name(self) -> str:
        """Its name: as it was exported, else as the module calls it."""
        name: str = self.__name__  # type: ignore[attr-defined]
        return name

    @property
    def __signature__(self) -> "inspect.Signature":
        import inspect  # here, since it is large and seldom asked for

        if bridge.at(layout.FunctionInstance, bridge.address_of(self)).kind == layout.HOST:  # type: ignore[arg-type]
            try:
                return inspect.signature(host_callable(self._address))
            except (TypeError, ValueError):
                pass
        kind = self.type
        parameters = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, annotation=python_type(param))
            for name, param in zip(parameter_names(self), kind.params, strict=True)
        ]
        results = tuple(map(python_type, kind.results))
        result: Any = None if not results else results[0] if len(results) == 1 else tuple.__class_getitem__(results)
        return inspect.Signature(parameters, return_annotation=result)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return f"{printable(self.name, 100)}{short(self.type)}"

    def start(self, *arguments: Any) -> Call:
        """Begin a resumable call, which runs when it is resumed.

        Raises:
            TypeError, ValueError: an argument does not fit.
        """
        return start_call(self, arguments)

    def aio(self, *arguments: Any) -> Coroutine[Any, Any, Any]:
        """Call it as a task of the running event loop: `await function.aio(...)`.

        The guest runs on a worker. Host functions may be coroutine functions, or return something else to be awaited:
        the guest waits for that, and nobody waits for the guest. To cancel what awaits it cancels the guest.

        Raises:
            TypeError, ValueError: an argument does not fit.
        """
        from greenbeat.api.guests import aio

        return aio(self, arguments)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        if not self._address:
            return f"<greenbeat.Function {printable(self.name, 100)}, gone>"
        host = "host " if _instance(self).kind == layout.HOST else ""
        return f"<greenbeat.Function {host}{printable(self.name, 100)}{short(self.type)}>"

    def __reduce__(self) -> Any:
        raise TypeError("a greenbeat.Function cannot be pickled or copied")


builtin_callable = callable


def _instance(function: Any) -> Any:
    return bridge.at(layout.FunctionInstance, bridge.address_of(function))


def parameter_names(function: Any) -> list[str]:
    """Names for the parameters: those of the module's name section if they are good Python, else `a0`, `a1`, ..."""
    from greenbeat.api.module import description_of

    target = _instance(function)
    known: dict[int, str] = {}
    if target.kind == layout.GUEST:
        found = description_of(bridge.at(layout.Instance, target.instance).module)
        known = found.names.locals.get(target.index, {}) if found is not None else {}
    names: list[str] = []
    for index in range(len(function_type_at(target.signature).params)):
        name = known.get(index, "")
        names.append(name if name.isidentifier() and name not in names else f"a{index}")
    return names


def start_call(function: Any, arguments: tuple[Any, ...]) -> Call:
    """Begin a resumable call."""
    target = _instance(function)
    if target.kind == layout.HOST:
        raise TypeError(f"{errorhooks.told(function)} is a host function: only guests can be suspended")
    wanted = len(function_type_at(target.signature).params)
    if len(arguments) != wanted:
        errorhooks.argument_count(function, len(arguments))
    call: Call = bridge.native.new_call(function, arguments)
    return call


def _complete() -> None:
    for name, value in vars(_Methods).items():
        if name not in ("__module__", "__qualname__", "__dict__", "__weakref__", "__slots__", "__annotations__"):
            setattr(_type, name, value)


_complete()

if TYPE_CHECKING:
    import inspect

    class Function:
        """A function of a guest, or of the host for guests. Called with positional arguments only."""

        __name__: str
        _address: int
        _owner: Any

        def __init__(
            self,
            callable: Callable[..., Any],
            params: Iterable[Any] | None = None,
            results: Iterable[Any] | None = None,
        ) -> None: ...
        def __call__(self, /, *arguments: Any) -> Any: ...
        def start(self, *arguments: Any) -> Call: ...
        def aio(self, *arguments: Any) -> Coroutine[Any, Any, Any]: ...
        @property
        def type(self) -> FunctionType: ...
        @property
        def name(self) -> str: ...

else:
    Function = _type
