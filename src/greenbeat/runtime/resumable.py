"""Resumable calls: they stop when their fuel is used up, and go on when they are given more.

    READY ──resume──▶ RUNNING ──fuel used up──▶ SUSPENDED ──resume──▶ RUNNING ──▶ FINISHED, with `result`
                        └── an exception, a trap ──▶ FAILED

Each has a task of its own, which a slot's fiber borrows while it runs. It is always metered, so that its code is the
same at every resumption; what it uses is also taken from its instance's fuel, if that has any.
"""

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
    struct,
    u32,
    u64,
    void,
)
from greenbeat.runtime.callable import (
    bad_argument,
    explain_stop,
    go,
    may_enter,
    raise_about,
    raise_exhausted,
    results_of,
    run_guest_here,
)
from greenbeat.runtime.conversions import to_slot
from greenbeat.runtime.functions import FunctionObject
from greenbeat.runtime.hooks import DROPPED, FUEL, MEMORY, TIME
from greenbeat.runtime.layout import (
    BEGINS,
    FINISHED,
    GOES_ON,
    METERED,
    RAISED,
    STACK_MARGIN,
    SUSPENDED,
    Instance,
    Task,
)
from greenbeat.runtime.pythonapi import (
    HAVE_GC,
    MEMBER_OBJECT,
    MEMBER_SIZE,
    MEMBER_UNSIGNED_INT,
    NO_INSTANTIATION,
    TP_CLEAR,
    TP_DEALLOC,
    TP_MEMBERS,
    TP_TRAVERSE,
    Member,
    Object,
    Py_IncRef,
    PyObject_ClearWeakRefs,
    PyObject_GC_UnTrack,
    PyTuple_GetItem,
    PyType_GenericAlloc,
    Slot,
    drop,
    end_members,
    free_object,
    make_type,
    set_member,
    set_slot,
)
from greenbeat.runtime.system import now
from greenbeat.runtime.tasks import new_task, recycle_task, this_thread
from greenbeat.tasks.layout import Fiber, Worker
from greenbeat.tasks.slots import give_back_task, guest_of, lend_task, new_slot, release_slot, room_for
from greenbeat.tasks.threads import worker_of

READY, CALL_RUNNING, CALL_SUSPENDED, CALL_FINISHED, CALL_FAILED = range(5)
UNLIMITED = (1 << 63) - 1


@struct
class CallObject:
    """A `greenbeat.Call`. `task` is null once the call is over, `result` before.

    `time_left` is in nanoseconds. `carried` is fuel that was given and did not suffice for the next straight run of
    code.
    """

    head: Object
    function: ptr[FunctionObject]
    task: ptr[Task]
    result: ptr[Object]
    weak_references: ptr[Object]
    time_left: u64
    carried: i64
    state: u32


call_type = static(ptr[void], name="call_type")


@native
def end_call(self: ptr[CallObject], state: u32) -> None:
    """The call is over, or given up: give its task back."""
    self.state = state
    task = self.task
    self.task = None
    if task is not None:
        recycle_task(task)


@export
def new_call(function: ptr[FunctionObject], arguments: ptr[Object]) -> ptr[Object]:
    """A call with the arguments of a tuple that has the right size; owned by the caller, null with an exception set."""
    target = function.target
    if target is None:
        raise_about(function, DROPPED)
        return cast(ptr[Object], 0)
    signature = target.signature
    instance = target.instance
    room = room_for(target)
    self = cast(ptr[CallObject], PyType_GenericAlloc(call_type[0], 0))
    if self is None:
        return cast(ptr[Object], 0)
    Py_IncRef(cast(ptr[Object], function))
    self.function = function
    self.time_left = instance.time_limit
    task = new_task(instance.stack_limit + room)
    self.task = task
    if task is None:
        raise_exhausted(MEMORY)
        drop(cast(ptr[Object], self))
        return cast(ptr[Object], 0)
    slots = cast(ptr[u64], task.stack)
    # The sweep of references looks at the arguments from now on.
    task.top = task.stack + room
    task.ceiling = task.stack_end - STACK_MARGIN
    if instance.stack_limit + room < u64(task.ceiling - task.stack):
        task.ceiling = task.stack + (instance.stack_limit + room)
    task.mode = METERED
    # Nobody resumes it while conversions run Python code.
    self.state = CALL_RUNNING
    for i in range(signature.param_count):
        slots[i] = 0
    for i in range(signature.param_count):
        item = PyTuple_GetItem(arguments, i64(i))
        if not to_slot(signature.params[i], item, slots + i, function.owner):
            bad_argument(function, i, item)
            drop(cast(ptr[Object], self))
            return cast(ptr[Object], 0)
    self.state = READY
    return cast(ptr[Object], self)


@native
def give_fuel(self: ptr[CallObject], fuel: i64) -> bool:
    """Put fuel into the task: as much as is given, and not more than the instance has. False if that has none."""
    task = self.task
    instance = self.function.target.instance
    task.fuel = fuel if fuel > UNLIMITED - self.carried else fuel + self.carried
    task.payer = None
    task.reserve = 0
    if instance.metered == METERED:
        if instance.fuel <= 0:
            return False
        if instance.fuel < task.fuel:
            task.fuel = instance.fuel
        task.payer = instance
        task.reserve = instance.fuel - task.fuel
        task.shown = instance.fuel
    return True


@native
def set_call_limits(self: ptr[CallObject], task: ptr[Task], instance: ptr[Instance]) -> u64:
    """Put the limits into the task that goes on; when that is, if time is limited. There is some left."""
    task.soft = task.ceiling
    task.limit = task.ceiling
    task.bound = instance.bound
    if instance.time_limit == 0:
        return 0
    begun = now()
    if task.deadline == 0 or begun + self.time_left < task.deadline:
        task.deadline = begun + self.time_left
    return begun


@native
def note_time(self: ptr[CallObject], begun: u64) -> None:
    """The call has run since a time, if time is limited."""
    if begun != 0:
        spent = now() - begun
        self.time_left = self.time_left - spent if spent < self.time_left else u64(0)


@native
def settle_call(self: ptr[CallObject], status: u32) -> u32:
    """The call has stopped; as `resume_call`. With RAISED, an exception is set."""
    task = self.task
    if status == SUSPENDED:
        self.state = CALL_SUSPENDED
        # What is live on its stack, for the sweep of references.
        task.top = task.sp + task.instance.module.largest_frame
        self.carried = task.fuel
        if task.payer is not None and task.reserve == 0:
            self.carried = 0
            raise_exhausted(FUEL)
            return 0
        return 1
    if status == FINISHED:
        self.result = results_of(self.function.target.signature, cast(ptr[u64], task.stack))
        end_call(self, CALL_FINISHED if self.result is not None else u32(CALL_FAILED))
        return u32(self.result is not None)
    end_call(self, CALL_FAILED)
    return 0


@native
def may_go_on(self: ptr[CallObject]) -> bool:
    """Whether a call has not begun, or is suspended."""
    return (self.state == READY or self.state == CALL_SUSPENDED) and self.function is not None


@native
def call_slot(self: ptr[CallObject], worker: ptr[Worker], fuel: i64, entry: ptr[void], references: u32) -> ptr[Fiber]:
    """A fiber for a call that may go on, which is RUNNING from now on; null with an exception set."""
    nothing = cast(ptr[Fiber], 0)
    target = self.function.target
    if target is None or target.instance.closed != 0:
        raise_about(self.function, DROPPED)
        return nothing
    if not give_fuel(self, fuel):
        raise_exhausted(FUEL)
        return nothing
    if target.instance.time_limit != 0 and self.time_left == 0:
        raise_exhausted(TIME)
        return nothing
    fiber = nothing
    if worker is not None:
        fiber = new_slot(worker, 0, cast(function[[ptr[Fiber]], None], entry), references)
    if fiber is None:
        raise_exhausted(MEMORY)
        return nothing
    task = self.task
    lend_task(fiber, task)
    guest = guest_of(fiber)
    guest.entrance = BEGINS if self.state == READY else u32(GOES_ON)
    if self.state == READY:
        task.ip = None
        task.sp = task.stack
        task.instance = None
    self.state = CALL_RUNNING
    return fiber


@export
def resume_call(self: ptr[CallObject], fuel: i64) -> u32:
    """Run a call until it is over or has used its fuel.

    Args:
        self: the call; the caller keeps it alive.
        fuel: how much it may use, above 0.

    Returns:
        1; 0 with an exception set; 2 if it is neither READY nor SUSPENDED. The state tells what became of the call:
        one that stopped because its instance has too little fuel left is SUSPENDED.
    """
    if not may_go_on(self):
        return 2
    target = self.function.target
    thread = this_thread()
    worker = worker_of(thread) if thread is not None else cast(ptr[Worker], 0)
    if worker is not None and target is not None and not may_enter(self.function, thread, target.instance):
        return 0
    fiber = call_slot(self, worker, fuel, cast(ptr[void], run_guest_here), 1)
    if fiber is None:
        return 0
    task = self.task
    outer = thread.task
    task.deadline = outer.deadline if outer is not None else u64(0)
    begun = set_call_limits(self, task, target.instance)
    status = go(thread, worker, fiber, target)
    if status != FINISHED and status != RAISED and status != SUSPENDED:
        status = explain_stop(target, task, status)
    give_back_task(fiber, guest_of(fiber))
    release_slot(worker, fiber)
    note_time(self, begun)
    return settle_call(self, status)


# ---------------------------------------------------------------- the Python type


@native
def call_traverse(self: ptr[CallObject], visit: function[[ptr[Object], ptr[void]], i32], argument: ptr[void]) -> i32:
    """`tp_traverse`."""
    found = visit(cast(ptr[Object], self.head.type), argument)
    if found == 0 and self.function is not None:
        found = visit(cast(ptr[Object], self.function), argument)
    if found == 0 and self.result is not None:
        found = visit(self.result, argument)
    return found


@native
def call_clear(self: ptr[CallObject]) -> i32:
    """`tp_clear`: what is suspended is given up. A call that runs is not garbage."""
    end_call(self, CALL_FAILED)
    called = self.function
    result = self.result
    self.function = None
    self.result = None
    drop(cast(ptr[Object], called))
    drop(result)
    return 0


@native
def call_dealloc(self: ptr[CallObject]) -> None:
    """`tp_dealloc`."""
    PyObject_GC_UnTrack(cast(ptr[Object], self))
    if self.weak_references is not None:
        PyObject_ClearWeakRefs(cast(ptr[Object], self))
    call_clear(self)
    free_object(cast(ptr[Object], self))


@export
def create_call_type() -> ptr[void]:
    """Make the type; null with an exception set."""
    members = stack(Member, 5)
    set_member(members, "__weaklistoffset__", MEMBER_SIZE, offsetof(CallObject, "weak_references"))
    set_member(members + 1, "function", MEMBER_OBJECT, offsetof(CallObject, "function"))
    set_member(members + 2, "_result", MEMBER_OBJECT, offsetof(CallObject, "result"))
    set_member(members + 3, "_state", MEMBER_UNSIGNED_INT, offsetof(CallObject, "state"))
    end_members(members + 4)
    slots = stack(Slot, 5)
    set_slot(slots, TP_TRAVERSE, call_traverse)
    set_slot(slots + 1, TP_CLEAR, call_clear)
    set_slot(slots + 2, TP_DEALLOC, call_dealloc)
    set_slot(slots + 3, TP_MEMBERS, members)
    set_slot(slots + 4, 0, None)
    call_type[0] = make_type("greenbeat.Call", sizeof(CallObject), HAVE_GC | NO_INSTANTIATION, slots)
    return call_type[0]
