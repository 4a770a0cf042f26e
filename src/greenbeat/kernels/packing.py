"""Values between Python and the words that a kernel's thunk reads and writes, driven by layouts (see `types.py`).

    f(3, 0.5, array) ──pack──▶ │ 3 │ bits of 0.5 │ address │ length │ ──thunk──▶ │ result │ ──unpack──▶ object

An array stays where it is: its buffer is held until `release_views`.
"""

import sys

from greenbeat.kernels.hooks import CHANNEL, HOOKS
from greenbeat.kernels.types import (
    CODE_ARRAY,
    CODE_BOOL,
    CODE_CHANNEL,
    CODE_F32,
    CODE_F64,
    CODE_I8,
    CODE_I16,
    CODE_I32,
    CODE_I64,
    CODE_NONE,
    CODE_TUPLE,
    CODE_U8,
    CODE_U16,
    CODE_U32,
    CODE_U64,
)
from greenbeat.native import (
    array,
    bitcast,
    cast,
    extern,
    f32,
    f64,
    function,
    i32,
    i64,
    inline,
    likely,
    native,
    ptr,
    static,
    struct,
    table,
    u8,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.conversions import large_i64
from greenbeat.runtime.hooks import none_object
from greenbeat.runtime.pythonapi import (
    Buffer,
    Object,
    Py_DecRef,
    Py_IncRef,
    PyBuffer_Release,
    PyErr_Clear,
    PyErr_Occurred,
    PyFloat_AsDouble,
    PyFloat_FromDouble,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_CallFunction,
    PyObject_GetBuffer,
    PyTuple_GetItem,
    PyTuple_New,
    PyTuple_SetItem,
    PyTuple_Size,
)
from greenbeat.tasks.layout import Fiber

PYTHON_WRITABLE, PYTHON_FORMAT, PYTHON_STRIDES = 1, 4, 0x18
# What `pack_arguments` returns when an argument does not fit: the position of the first that does not, plus this.
MISFIT = 1 << 16
NATIVE_ORDER = ord("<" if sys.byteorder == "little" else ">")


@extern
def PyLong_FromUnsignedLongLong(value: u64) -> ptr[Object]: ...  # noqa: D103


@struct
class View:
    """`Py_buffer`, all of it."""

    data: ptr[u8]
    owner: ptr[Object]
    size: i64
    item_size: i64
    readonly: i32
    dimensions: i32
    format: ptr[u8]
    shape: ptr[i64]
    strides: ptr[i64]
    suboffsets: ptr[i64]
    internal: ptr[void]


@struct
class KernelObject:
    """A `greenbeat.Kernel`.

    `thunk` is null until the kernel is compiled. `words` is what arguments or results need, whichever is more.
    """

    head: Object
    vectorcall: ptr[void]
    thunk: function[[ptr[Fiber]], None]
    parameters: ptr[u8]
    results: ptr[u8]
    count: u32
    words: u32
    attributes: ptr[Object]
    weak_references: ptr[Object]


@struct
class Packing:
    """Where packing is: the next layout, the next word, the next view."""

    layout: ptr[u8]
    word: ptr[u64]
    views: ptr[View]
    held: u32


kernel_hooks = static(array[ptr[Object], HOOKS], name="kernel_hooks")
# Python's True and False.
truths = static(array[ptr[Object], 2], name="truths")

_LEAST = {CODE_I8: -(1 << 7), CODE_I16: -(1 << 15), CODE_I32: -(1 << 31)}
_GREATEST = {CODE_I8: (1 << 7) - 1, CODE_I16: (1 << 15) - 1, CODE_I32: (1 << 31) - 1}
_GREATEST |= {CODE_U8: (1 << 8) - 1, CODE_U16: (1 << 16) - 1, CODE_U32: (1 << 32) - 1}
least = table(i64, [_LEAST.get(code, 0) for code in range(CODE_NONE + 1)], name="least")
greatest = table(i64, [_GREATEST.get(code, 0) for code in range(CODE_NONE + 1)], name="greatest")
_SIZES = {CODE_BOOL: 1, CODE_I8: 1, CODE_I16: 2, CODE_I32: 4, CODE_I64: 8, CODE_U8: 1, CODE_U16: 2, CODE_U32: 4}
_SIZES |= {CODE_U64: 8, CODE_F32: 4, CODE_F64: 8}
sizes = table(u8, [_SIZES.get(code, 0) for code in range(CODE_NONE + 1)], name="sizes")
# For each letter of `struct`'s formats: 1 a bool, 2 signed, 3 unsigned, 4 a float.
_KINDS = {**dict.fromkeys(b"?", 1), **dict.fromkeys(b"bhilqn", 2), **dict.fromkeys(b"BHILQN", 3)}
_KINDS |= dict.fromkeys(b"fd", 4)
letter_kinds = table(u8, [_KINDS.get(letter, 0) for letter in range(256)], name="letter_kinds")
_WANTED = {CODE_BOOL: 1, CODE_F32: 4, CODE_F64: 4}
_WANTED |= dict.fromkeys((CODE_I8, CODE_I16, CODE_I32, CODE_I64), 2)
_WANTED |= dict.fromkeys((CODE_U8, CODE_U16, CODE_U32, CODE_U64), 3)
code_kinds = table(u8, [_WANTED.get(code, 0) for code in range(CODE_NONE + 1)], name="code_kinds")


# ---------------------------------------------------------------- in


@native(noinline=True)
def pack_number(code: u32, item: ptr[Object], word: ptr[u64]) -> bool:
    """A number or a bool that is neither i64 nor f64; False if it does not fit, perhaps with an exception set."""
    if code == CODE_BOOL:
        word[0] = u64(cast(u64, item) == cast(u64, truths[1]))
        return word[0] != 0 or cast(u64, item) == cast(u64, truths[0])
    if code == CODE_F32:
        value = PyFloat_AsDouble(item)
        word[0] = bitcast(u64, f64(f32(value)))
        return value != -1.0 or PyErr_Occurred() is None
    number = PyLong_AsLongLong(item)
    word[0] = u64(number)
    if number == -1 and PyErr_Occurred() is not None:
        return code == CODE_U64 and large_i64(item, word) and i64(word[0]) < 0
    if code == CODE_U64:
        return number >= 0
    return number >= least[code] and number <= greatest[code]


@native
def fits_elements(view: ptr[View], code: u32) -> bool:
    """Whether a buffer's elements are of the type that a kernel wants."""
    if view.item_size != i64(sizes[code]):
        return False
    letter = u8(ord("B"))
    place = view.format
    if place is not None:
        if place[0] == ord("@") or place[0] == ord("=") or place[0] == NATIVE_ORDER:
            place = place + 1
        letter = place[0]
        if letter == 0 or place[1] != 0:
            return False
    return letter_kinds[letter] == code_kinds[code]


@native(noinline=True)
def pack_array(item: ptr[Object], packing: ptr[Packing]) -> bool:
    """A buffer, held in the next view; False if it does not fit, perhaps with an exception set."""
    layout = packing.layout
    dimensions, code, written = i32(layout[1]), u32(layout[2]), layout[3]
    packing.layout = layout + 4
    view = packing.views + packing.held
    flags = PYTHON_FORMAT | PYTHON_STRIDES | (PYTHON_WRITABLE if written != 0 else 0)
    if PyObject_GetBuffer(item, cast(ptr[Buffer], view), i32(flags)) != 0:
        return False
    packing.held += 1
    word = packing.word
    if view.dimensions != dimensions or not fits_elements(view, code):
        return False
    size = view.item_size
    # An empty one may lie anywhere.
    if cast(u64, view.data) % u64(size) != 0 and view.size != 0:
        return False
    word[0] = cast(u64, view.data)
    word[1] = u64(view.shape[0])
    # Without strides, which ctypes leaves out whatever is asked for, the elements lie side by side.
    strides = view.strides
    if dimensions == 1:
        packing.word = word + 2
        return strides is None or strides[0] == size or view.shape[0] <= 1
    columns = view.shape[1]
    row = columns * size if strides is None else strides[0]
    column = size if strides is None else strides[1]
    word[2] = u64(columns)
    word[3] = u64(row // size)
    word[4] = u64(column // size)
    packing.word = word + 5
    return row % size == 0 and column % size == 0


@native
def after(layout: ptr[u8]) -> ptr[u8]:
    """What follows a layout."""
    if layout[0] == CODE_ARRAY:
        return layout + 4
    if layout[0] == CODE_CHANNEL:
        return after(layout + 1)
    if layout[0] != CODE_TUPLE:
        return layout + 1
    count = layout[1]
    layout = layout + 2
    for _ in range(count):
        layout = after(layout)
    return layout


@native(noinline=True)
def pack_channel(item: ptr[Object], packing: ptr[Packing]) -> bool:
    """The address of a channel, which the caller holds; False with an exception set."""
    layout = packing.layout
    address = PyObject_CallFunction(kernel_hooks[CHANNEL], "OK", item, cast(u64, layout))
    if address is None:
        return False
    packing.word[0] = u64(PyLong_AsLongLong(address))
    Py_DecRef(address)
    packing.word = packing.word + 1
    packing.layout = after(layout)
    return True


@native
def pack_value(item: ptr[Object], packing: ptr[Packing]) -> bool:
    """A value by the next layout; False if it does not fit, perhaps with an exception set."""
    code = u32(packing.layout[0])
    if code == CODE_ARRAY:
        return pack_array(item, packing)
    if code == CODE_CHANNEL:
        return pack_channel(item, packing)
    if code == CODE_TUPLE:
        count = i64(packing.layout[1])
        packing.layout = packing.layout + 2
        if PyTuple_Size(item) != count:
            PyErr_Clear()
            return False
        for position in range(count):
            if not pack_value(PyTuple_GetItem(item, position), packing):
                return False
        return True
    word = packing.word
    packing.layout = packing.layout + 1
    packing.word = word + 1
    if code == CODE_I64:
        number = PyLong_AsLongLong(item)
        word[0] = u64(number)
        return number != -1 or PyErr_Occurred() is None
    if code == CODE_F64:
        value = PyFloat_AsDouble(item)
        word[0] = bitcast(u64, value)
        return value != -1.0 or PyErr_Occurred() is None
    return pack_number(code, item, word)


@native
def release_views(views: ptr[View], held: u32) -> None:
    """Give buffers back."""
    for position in range(held):
        PyBuffer_Release(cast(ptr[Buffer], views + position))


@native
def pack_arguments(
    kernel: ptr[KernelObject], arguments: ptr[ptr[Object]], words: ptr[u64], views: ptr[View], packing: ptr[Packing]
) -> u32:
    """Convert a kernel's arguments, as many as it takes.

    Returns:
        How many views are held, to be released after the call; or MISFIT plus a position, perhaps with an exception
        set, and nothing held.
    """
    layout = kernel.parameters
    word = words
    for position in range(kernel.count):
        item = arguments[position]
        if likely(layout[0] == CODE_I64):
            number = PyLong_AsLongLong(item)
            word[0] = u64(number)
            if unlikely(number == -1) and PyErr_Occurred() is not None:
                release_views(views, packing.held)
                return MISFIT + position
            layout = layout + 1
            word = word + 1
            continue
        packing.layout = layout
        packing.word = word
        packing.views = views
        if unlikely(not pack_value(item, packing)):
            release_views(views, packing.held)
            return MISFIT + position
        layout = packing.layout
        word = packing.word
    return packing.held


# ---------------------------------------------------------------- out


@native
def unpack_number(code: u32, word: u64) -> ptr[Object]:
    """A number or a bool as an object, owned by the caller; null with an exception set."""
    if likely(code <= CODE_U32 and code >= CODE_I8):
        return PyLong_FromLongLong(i64(word))
    if code == CODE_F64 or code == CODE_F32:
        return PyFloat_FromDouble(bitcast(f64, word))
    if code == CODE_U64:
        return PyLong_FromUnsignedLongLong(word)
    found = none_object[0] if code == CODE_NONE else truths[word & 1]
    Py_IncRef(found)
    return found


@native
def unpack_value(packing: ptr[Packing]) -> ptr[Object]:
    """A value by the next layout, owned by the caller; null with an exception set."""
    code = u32(packing.layout[0])
    if code != CODE_TUPLE:
        word = packing.word
        packing.layout = packing.layout + 1
        packing.word = word + 1
        return unpack_number(code, word[0])
    count = i64(packing.layout[1])
    packing.layout = packing.layout + 2
    made = PyTuple_New(count)
    if made is None:
        return made
    for position in range(count):
        item = unpack_value(packing)
        if item is None:
            Py_DecRef(made)
            return cast(ptr[Object], 0)
        PyTuple_SetItem(made, position, item)
    return made


@inline
def unpack_results(kernel, words, packing) -> ptr[Object]:
    """What a kernel returned, owned by the caller; null with an exception set."""
    code = u32(kernel.results[0])
    if likely(code != CODE_TUPLE):
        return unpack_number(code, words[0])
    packing.layout = kernel.results
    packing.word = words
    return unpack_value(packing)
