"""Calls of kernels from Python, and the native type of kernels.

    kernel(3) ──vectorcall──▶ call_kernel ─▶ pack ─▶ │ fiber: words │ ─▶ run_on_fiber ─▶ thunk ─▶ kernel
                                   ▲                                                      │
                                   └── unpack, or the failure's exception ◀───────────────┘

What is off the path is done by hooks, Python functions that `objects.py` registers. They return the exceptions that
are raised here: so tracebacks end at the user's call, without a frame of ours.
"""

from greenbeat.kernels.hooks import ARGUMENT, BIND, COMPILE, FAILURE
from greenbeat.kernels.packing import (
    MISFIT,
    KernelObject,
    Packing,
    View,
    kernel_hooks,
    pack_arguments,
    release_views,
    truths,
    unpack_results,
)
from greenbeat.kernels.types import MOST_ARRAYS
from greenbeat.native import (
    cast,
    export,
    function,
    i32,
    i64,
    native,
    offsetof,
    ptr,
    sizeof,
    stack,
    static,
    u8,
    u32,
    u64,
    unlikely,
    void,
)
from greenbeat.runtime.hooks import none_object, or_none, take_exception
from greenbeat.runtime.pythonapi import (
    HAVE_GC,
    HAVE_VECTORCALL,
    MEMBER_SIZE,
    NO_INSTANTIATION,
    TP_CALL,
    TP_CLEAR,
    TP_DEALLOC,
    TP_MEMBERS,
    TP_TRAVERSE,
    VECTORCALL_ROOM,
    Member,
    Object,
    Py_DecRef,
    Py_IncRef,
    PyErr_NoMemory,
    PyErr_SetObject,
    PyObject_CallFunction,
    PyObject_ClearWeakRefs,
    PyObject_GC_UnTrack,
    PyTuple_GetItem,
    PyTuple_New,
    PyTuple_SetItem,
    PyTuple_Size,
    PyType_GenericAlloc,
    PyVectorcall_Call,
    Slot,
    drop,
    end_members,
    free_object,
    make_type,
    set_member,
    set_slot,
)
from greenbeat.runtime.tasks import this_thread
from greenbeat.tasks.layout import DIRECT, FINISHED, Fiber, Worker
from greenbeat.tasks.stacks import new_fiber, release_fiber
from greenbeat.tasks.threads import RAISED, run_on_fiber, worker_of

kernel_type = static(ptr[void], name="kernel_type")


@export
def set_kernel_hook(number: u32, callable: ptr[Object]) -> None:
    """Register a hook; it is kept for good."""
    Py_IncRef(callable)
    kernel_hooks[number] = callable


@export
def set_truths(false: ptr[Object], true: ptr[Object]) -> None:
    """Tell native code where False and True are."""
    truths[0] = false
    truths[1] = true


# ---------------------------------------------------------------- off the path


@native
def raise_told(exception: ptr[Object]) -> None:
    """Raise what a hook returned, if it did not raise itself; Python notes what the caller was handling."""
    if exception is not None:
        PyErr_SetObject(exception.type, exception)
        Py_DecRef(exception)


@native(cold=True)
def compiled_now(self: ptr[KernelObject]) -> bool:
    """Compile a kernel; False with an exception set."""
    problem = PyObject_CallFunction(kernel_hooks[COMPILE], "O", self)
    if problem == none_object[0]:
        drop(problem)
        return True
    raise_told(problem)
    return False


@native(cold=True)
def bad_argument(self: ptr[KernelObject], position: u32, value: ptr[Object]) -> None:
    """Raise what is wrong with an argument."""
    cause = take_exception()
    raise_told(PyObject_CallFunction(kernel_hooks[ARGUMENT], "OiOO", self, i32(position), value, or_none(cause)))
    drop(cause)


@native(cold=True)
def raise_failure(fiber: ptr[Fiber], status: u32) -> None:
    """Raise what a fiber ended with."""
    if status == RAISED:
        return
    words = fiber.words
    form = "iKKK"
    site = cast(u64, fiber.failure)
    raise_told(PyObject_CallFunction(kernel_hooks[FAILURE], form, i32(status), site, words[0], words[1]))


@native(cold=True)
def bind(self: ptr[KernelObject], given: ptr[Object], keywords: ptr[Object]) -> ptr[Object]:
    """A tuple of all arguments, owned by the caller; null with an exception set."""
    bound = PyObject_CallFunction(kernel_hooks[BIND], "OOO", self, given, or_none(keywords))
    if bound is None or bound.type == given.type:
        return bound
    raise_told(bound)
    return cast(ptr[Object], 0)


@native
def bound_arguments(self: ptr[KernelObject], given: ptr[Object]) -> ptr[Object]:
    """A tuple of as many arguments as there are parameters, owned by the caller; null with an exception set."""
    if PyTuple_Size(given) == i64(self.count):
        Py_IncRef(given)
        return given
    return bind(self, given, cast(ptr[Object], 0))


@native(cold=True)
def call_bound(self: ptr[KernelObject], arguments: ptr[ptr[Object]], count: u64, keywords: ptr[Object]) -> ptr[Object]:
    """A call whose arguments are not as many as the parameters, or have names."""
    total = i64(count) + (PyTuple_Size(keywords) if keywords is not None else i64(0))
    given = PyTuple_New(total)
    if given is None:
        return given
    for position in range(total):
        Py_IncRef(arguments[position])
        PyTuple_SetItem(given, position, arguments[position])
    bound = bind(self, given, keywords)
    Py_DecRef(given)
    if bound is None:
        return bound
    items = stack(ptr[Object], 128)
    for index in range(self.count):
        items[index] = PyTuple_GetItem(bound, i64(index))
    result = call_kernel(self, items, u64(self.count), None)
    Py_DecRef(bound)
    return result


# ---------------------------------------------------------------- the call


@native(shared=True)
def call_kernel(
    self: ptr[KernelObject], arguments: ptr[ptr[Object]], count_and_flag: u64, keywords: ptr[Object]
) -> ptr[Object]:
    """`vectorcall` of `greenbeat.Kernel`."""
    if unlikely(cast(u64, self.thunk) == 0) and not compiled_now(self):
        return cast(ptr[Object], 0)
    count = count_and_flag & ~u64(VECTORCALL_ROOM)
    if unlikely(keywords is not None) or unlikely(count != u64(self.count)):
        return call_bound(self, arguments, count, keywords)
    thread = this_thread()
    worker = worker_of(thread) if thread is not None else cast(ptr[Worker], 0)
    if unlikely(worker is None):
        return PyErr_NoMemory()
    fiber = new_fiber(worker, DIRECT, self.thunk, self.words, 1)
    if unlikely(fiber is None):
        return PyErr_NoMemory()
    views = stack(View, MOST_ARRAYS)
    packing = stack(Packing)
    packing.held = 0
    held = pack_arguments(self, arguments, fiber.words, views, packing)
    if unlikely(held >= MISFIT):
        release_fiber(worker, fiber)
        position = held - MISFIT
        bad_argument(self, position, arguments[position])
        return cast(ptr[Object], 0)
    status = run_on_fiber(thread, worker, fiber)
    result = cast(ptr[Object], 0)
    if unlikely(status != FINISHED):
        raise_failure(fiber, status)
    else:
        result = unpack_results(self, fiber.words, packing)
    release_fiber(worker, fiber)
    if held != 0:
        release_views(views, held)
    return result


# ---------------------------------------------------------------- the type


@native
def kernel_traverse(
    self: ptr[KernelObject], visit: function[[ptr[Object], ptr[void]], i32], argument: ptr[void]
) -> i32:
    """`tp_traverse`."""
    found = visit(cast(ptr[Object], self.head.type), argument)
    if found == 0 and self.attributes is not None:
        found = visit(self.attributes, argument)
    return found


@native
def kernel_clear(self: ptr[KernelObject]) -> i32:
    """`tp_clear`."""
    attributes = self.attributes
    self.attributes = None
    drop(attributes)
    return 0


@native
def kernel_dealloc(self: ptr[KernelObject]) -> None:
    """`tp_dealloc`."""
    PyObject_GC_UnTrack(cast(ptr[Object], self))
    if self.weak_references is not None:
        PyObject_ClearWeakRefs(cast(ptr[Object], self))
    kernel_clear(self)
    free_object(cast(ptr[Object], self))


@export
def create_kernel_type() -> ptr[Object]:
    """Make the type, owned by the engine; null with an exception set."""
    members = stack(Member, 4)
    set_member(members, "__vectorcalloffset__", MEMBER_SIZE, offsetof(KernelObject, "vectorcall"))
    set_member(members + 1, "__weaklistoffset__", MEMBER_SIZE, offsetof(KernelObject, "weak_references"))
    set_member(members + 2, "__dictoffset__", MEMBER_SIZE, offsetof(KernelObject, "attributes"))
    end_members(members + 3)
    slots = stack(Slot, 6)
    set_slot(slots, TP_CALL, PyVectorcall_Call)
    set_slot(slots + 1, TP_TRAVERSE, kernel_traverse)
    set_slot(slots + 2, TP_CLEAR, kernel_clear)
    set_slot(slots + 3, TP_DEALLOC, kernel_dealloc)
    set_slot(slots + 4, TP_MEMBERS, members)
    set_slot(slots + 5, 0, None)
    kernel_type[0] = make_type(
        "greenbeat.Kernel", sizeof(KernelObject), HAVE_GC | HAVE_VECTORCALL | NO_INSTANTIATION, slots
    )
    made = cast(ptr[Object], kernel_type[0])
    if made is not None:
        Py_IncRef(made)
    return made


@export
def new_kernel(count: u32, words: u32) -> ptr[Object]:
    """A kernel without code, owned by the caller; null with an exception set."""
    made = cast(ptr[KernelObject], PyType_GenericAlloc(kernel_type[0], 0))
    if made is not None:
        made.vectorcall = cast(ptr[void], call_kernel)
        made.count = count
        made.words = words
    return cast(ptr[Object], made)


@export
def set_kernel_code(self: ptr[KernelObject], thunk: u64, parameters: ptr[u8], results: ptr[u8]) -> None:
    """Give a kernel its code."""
    self.parameters = parameters
    self.results = results
    self.thunk = cast(function[[ptr[Fiber]], None], thunk)


@export
def kernel_is_compiled(self: ptr[KernelObject]) -> u32:
    """Whether a kernel has code."""
    return u32(cast(u64, self.thunk) != 0)
