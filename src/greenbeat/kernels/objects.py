"""`greenbeat.kernel` and `greenbeat.Kernel`: what users hold of a kernel. The type and its call are native code.

    @gb.kernel
    def fib(n: int) -> int: ...

    fib(30)            machine code, compiled at the first call
    fib.python(30)     the same in Python

Both give the same results, and raise the same exceptions.
"""

import ctypes
import os
import threading
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from greenbeat.engine import engine
from greenbeat.errors import KernelError
from greenbeat.kernels import hooks
from greenbeat.kernels.failures import failure
from greenbeat.kernels.source import KernelFunction, python_function
from greenbeat.kernels.types import ArrayType, ChannelType, kernel_type, layout, word_count
from greenbeat.native.types import BOOL, FloatType, IntegerType, Type

Result = TypeVar("Result")

_object, _word, _half = ctypes.py_object, ctypes.c_uint64, ctypes.c_uint32
_compiling = threading.RLock()


def exported(name: str, *types: Any) -> Any:
    """A function of the engine's that takes the GIL along: first its result's type, then its arguments'."""
    return ctypes.PYFUNCTYPE(*types)(engine.address(name))


new_kernel = exported("new_kernel", _object, _half, _half)
set_kernel_code = exported("set_kernel_code", None, _object, _word, _word, _word)
kernel_is_compiled = exported("kernel_is_compiled", _half, _object)


def kernel(python: Callable[..., Result]) -> "Kernel[Result]":
    """Make a kernel of a function: its first call compiles it to machine code.

    Raises:
        TypeError: this is no function.
        KernelError: its signature cannot be a kernel's, or its source is not at hand.
    """
    if not isinstance(python, types.FunctionType):
        raise TypeError(f"a kernel is made of a function, not {type(python).__name__}")
    try:
        function = KernelFunction(python)
    except KernelError as error:
        raise error.with_traceback(None) from None
    words = max(2, sum(word_count(kind) for _, kind in function.parameters), word_count(function.result))
    made = new_kernel(len(function.parameters), words)
    made._function, made._key = function, None
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(made, name, getattr(python, name))
    made.__wrapped__ = python
    return made  # type: ignore[no-any-return]


class _Methods(Generic[Result]):
    """What Python adds to the native type."""

    __slots__ = ()
    _function: KernelFunction
    _key: str | None
    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Result]

    def __new__(cls, python: Callable[..., Any]) -> Any:
        """As `greenbeat.kernel`."""
        return kernel(python)

    @property
    def python(self) -> Callable[..., Result]:
        """The kernel as plain Python, for debuggers and for comparison; it calls other kernels as plain Python too."""
        found: Callable[..., Result] = python_function(self._function)
        return found

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(self._function.python)

    def compile(self) -> None:
        """Compile the kernel now, and again if something that it was compiled from has changed since.

        Raises:
            KernelError: it, or a kernel that it calls, cannot be compiled.
        """
        try:
            compile_now(self, again=True)
        except KernelError as error:
            raise error.with_traceback(None) from None

    def __repr__(self) -> str:
        return f"<greenbeat.Kernel {self.__name__}{self._function.described}>"

    def __reduce__(self) -> Any:
        name = self.__qualname__
        if "<locals>" in name:
            raise TypeError(f"the kernel {name} cannot be pickled: it is no global name of its module")
        return name

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


if TYPE_CHECKING:

    class Kernel(_Methods[Result]):
        """A function with types that is compiled to machine code when it is first called."""

        def __call__(self, *arguments: Any, **named: Any) -> Result: ...

else:
    Kernel = exported("create_kernel_type", _object)()
    for _name in (
        "__new__",
        "python",
        "__signature__",
        "compile",
        "__repr__",
        "__reduce__",
        "__copy__",
        "__deepcopy__",
    ):
        setattr(Kernel, _name, vars(_Methods)[_name])


def compile_now(made: Any, again: bool = False) -> None:
    """Give a kernel its code, if it has none yet; with `again`, if it would be another."""
    from greenbeat.kernels import cache

    with _compiling:
        if kernel_is_compiled(made) and not again:
            return
        key = cache.key(made._function)
        if key == made._key:
            return
        library = cache.obtain(made._function, key)
        # The library is never unloaded: calls may be inside of what it replaces.
        *code, forks, _ = (library.addresses[symbol] for symbol in cache.SYMBOLS)
        set_kernel_code(made, *code)
        made._key = key
    # Without the lock: who closes the runtime meanwhile waits for workers, which may wait to compile.
    if ctypes.string_at(forks, 1) != b"\0":
        _ready_for_forks()


# A child could not go on with what another thread compiles.
os.register_at_fork(before=_compiling.acquire, after_in_parent=_compiling.release, after_in_child=_compiling.release)


def _ready_for_forks() -> None:
    """Let there be workers, and beats often enough for branches to be spread."""
    from greenbeat.api.runtime import ensure_runtime

    exported("beat_faster", None)()
    ensure_runtime()


# ---------------------------------------------------------------- hooks


def called_first(made: Any) -> Exception | None:
    """Compile a kernel that is called; what is wrong with it, if anything is."""
    try:
        compile_now(made)
    except KernelError as error:
        function: KernelFunction = made._function
        if function.told and error.file == function.file:
            # Its text was made for a call of `pmap` or the like: nobody can look at that.
            return TypeError(f"{function.python.__name__}: {error.message}")
        error.__cause__ = error.__context__ = None
        error.__suppress_context__ = False
        return error.with_traceback(None)
    return None


def argument(made: Any, position: int, value: object, cause: BaseException | None) -> BaseException:
    """What is wrong with an argument that does not fit."""
    function: KernelFunction = made._function
    kind = function.parameters[position][1]
    what = function.argument_told(position)
    if cause is not None and not isinstance(cause, TypeError | OverflowError | BufferError | ValueError):
        return cause
    if isinstance(kind, ArrayType):
        return TypeError(f"{what} must be {_wanted(kind)}, {_array_problem(kind, value)}")
    if isinstance(cause, OverflowError) or (isinstance(kind, IntegerType) and isinstance(value, int)):
        return OverflowError(f"{what}: {_short(value)} does not fit {kind.name}")
    if isinstance(kind, ChannelType):
        return TypeError(f"{what} must be {_wanted(kind)}, not {cause}")
    return TypeError(f"{what} must be {_wanted(kind)}, not {_described(value)}")


def _wanted(kind: Type) -> str:
    """A type in a Python programmer's words."""
    if isinstance(kind, ArrayType):
        return f"a buffer of {kind.element.name} with {kind.dimensions} dimension{'s' * (kind.dimensions > 1)}"
    if isinstance(kind, IntegerType):
        return "an int"
    if isinstance(kind, FloatType):
        return "a float"
    return "a bool" if kind == BOOL else f"a {kind.name}"


def _described(value: object) -> str:
    if value is None:
        return "None"
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _short(value: object) -> str:
    return f"a number of {value.bit_length()} bits" if isinstance(value, int) and abs(value) >> 70 else repr(value)


def element_name(view: memoryview) -> str | None:
    """The name of the type of a buffer's elements, if kernels have such a type."""
    letter = view.format.lstrip("@=<")
    if letter in tuple("bhilqnBHILQN"):
        return f"{'i' if letter.islower() else 'u'}{8 * view.itemsize}"
    return {"?": "bool", "f": "f32", "d": "f64"}.get(letter)


def _array_problem(kind: ArrayType, value: Any) -> str:
    """Why a value is not such an array."""
    try:
        view = memoryview(value)
    except TypeError:
        return f"not {_described(value)}"
    except ValueError as problem:
        # What numpy says of dates, which no buffer can hold.
        return f"not {_described(value)}: {problem}"
    if view.ndim != kind.dimensions:
        return f"not one with {view.ndim} dimension{'s' * (view.ndim != 1)}"
    named = element_name(view)
    if named != kind.element.name:
        return f"not one of {named or f'elements in the format {view.format!r}'}"
    if view.ndim == 1 and not view.contiguous:
        return "and the elements of this one do not lie side by side"
    if view.readonly:
        return "and this one cannot be written to"
    return "and the elements of this one are not aligned"


def bind(made: Any, given: tuple[Any, ...], names: tuple[str, ...] | None) -> "tuple[Any, ...] | TypeError":
    """A call whose arguments are not as many as the parameters, or have names."""
    import inspect

    function: KernelFunction = made._function
    count = len(given) - len(names or ())
    try:
        bound = inspect.signature(function.python).bind(
            *given[:count], **dict(zip(names or (), given[count:], strict=True))
        )
    except TypeError as problem:
        return TypeError(f"{function.python.__name__}{function.described}: {problem}")
    bound.apply_defaults()
    return tuple(bound.arguments.values())


def channel_address(value: Any, place: int) -> int:
    """The address of the channel that an argument is."""
    from greenbeat.api.channels import Channel, ChannelOf

    if not isinstance(value, Channel):
        raise TypeError(_described(value))
    known = layout(ChannelType(kernel_type(value.kind)))
    if ctypes.string_at(place, len(known)) != known:
        raise TypeError(f"a {kernel_type(ChannelOf(value.kind)).name}")
    return value._address


def _register() -> None:
    exported("prepare_tasks", None)()
    exported("prepare_forks", None)()
    exported("set_none", None, _object)(None)
    exported("set_truths", None, _object, _object)(False, True)
    register = exported("set_kernel_hook", None, _half, _object)
    for number, hook in (
        (hooks.COMPILE, called_first),
        (hooks.ARGUMENT, argument),
        (hooks.BIND, bind),
        (hooks.FAILURE, failure),
        (hooks.CHANNEL, channel_address),
    ):
        register(number, hook)


_register()

__all__ = ["Kernel", "kernel"]
