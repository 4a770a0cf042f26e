"""Tasks and channels in kernels: `spawn`, `sleep`, and the methods of what kernels hold by a word.

    task = gb.spawn(f, 1)        task.join()   task.cancel()
    channel: gb.Channel[int]     channel.send(1)   channel.recv()   channel.close()   for value in channel

A spawn without a name lets its task go; one with a name is joined once, by the kernel that spawned it.
"""

import ast
import time
from typing import Any

from greenbeat.forkjoin import words
from greenbeat.kernels import support
from greenbeat.kernels.forking import load_word, operand_types, rebuilt, store_words
from greenbeat.kernels.intrinsics import intrinsic, syntax
from greenbeat.kernels.source import KernelFunction
from greenbeat.kernels.statements import flattened
from greenbeat.kernels.types import ArrayType, ChannelType, TaskType, computed, scalars, word_count
from greenbeat.kernels.values import FIBER, Method
from greenbeat.native import types as t
from greenbeat.native.language import NativeFunction
from greenbeat.native.values import Loop, Value
from greenbeat.tasks.layout import MOST_CHANNELS

WORDS = t.PointerType(t.U64)
# What send and receive give; see `tasks/channels.py`.
OK, CLOSED, TIMED_OUT = 0, 1, 2


def service(emitter: Any, function: Any, operands: str, kind: t.Type) -> Value:
    """Call a function of `support.py` with the fiber and other operands."""
    assert isinstance(function, NativeFunction)
    text = f"call {kind.ir} {emitter.unit.reference(function)}(ptr {FIBER}{operands})"
    if kind == t.VOID:
        emitter.line(text)
        return Value("", t.VOID)
    return emitter.temporary(text, kind)  # type: ignore[no-any-return]


@syntax(words.spawn, "spawn(f, ...)")
def spawn(emitter: Any, node: ast.Call) -> Any:
    """`spawn(f, *arguments)`: a task of its own."""
    kernel: KernelFunction | None = emitter.kernel_named(node.args[0]) if node.args else None
    if kernel is None:
        return emitter.error("in a kernel, spawn takes a kernel and its arguments, as in gb.spawn(f, 1)", node)
    if any(isinstance(kind, ArrayType) for _, kind in kernel.parameters):
        emitter.error(
            "a kernel cannot give an array to a task, which may outlive it: use gb.par, or spawn in Python", node
        )
    if any(isinstance(kind, TaskType) for _, kind in kernel.parameters):
        emitter.error("a task is joined by the kernel that spawned it", node)
    if sum(isinstance(kind, ChannelType) for _, kind in kernel.parameters) > MOST_CHANNELS:
        emitter.error(f"a kernel gives at most {MOST_CHANNELS} channels to a task", node)
    call = ast.copy_location(ast.Call(node.args[0], node.args[1:], node.keywords), node)
    operands = emitter.kernel_operands(kernel, emitter.arguments(call), node)
    site = emitter.unit.branch_site(kernel, kernel.symbol)
    emitter.unit.reference(kernel)
    made = service(emitter, support.spawn, f", ptr {site}", WORDS)
    place = service(emitter, support.words_of, f", ptr {made.ir}", WORDS)
    store_words(emitter, place.ir, operands)
    for operand, kind in zip(operands, operand_types(kernel), strict=True):
        if isinstance(kind, ChannelType):
            service(emitter, support.hold, f", ptr {made.ir}, i64 {operand.ir}", t.VOID)
    detached = int(node in emitter.discarded)
    return service(emitter, support.start, f", ptr {made.ir}, i64 {detached}", TaskType(kernel.result))


@intrinsic(time.sleep, "sleep(seconds)", calls=True)
def sleep(emitter: Any, node: ast.AST, seconds: Any) -> Any:
    """`time.sleep(seconds)`: others run meanwhile."""
    amount = emitter.promoted(seconds, t.F64, node)
    negative = emitter.temporary(f"fcmp ult double {amount.ir}, 0.0", t.BOOL)
    emitter.fail_if(negative, "ValueError", "sleep length must be non-negative", node)
    return service(emitter, support.sleep, f", double {amount.ir}", t.VOID)


def call_method(emitter: Any, method: Method, node: ast.Call) -> Any:
    """A call of a method of a task or a channel."""
    emitter.calls = True
    kind = method.handle.type
    arguments = emitter.arguments(node)
    table = TASK_METHODS if isinstance(kind, TaskType) else CHANNEL_METHODS
    found: tuple[Any, int, int] | None = table.get(method.name)
    if found is None:
        return emitter.error(f"a {kind} has no {method.name!r} in a kernel: it has {', '.join(table)}", node)
    compile, fewest, most = found
    if not fewest <= len(arguments) <= most:
        emitter.error(f"{method.name} does not take {len(arguments)} argument{'s' * (len(arguments) != 1)}", node)
    return compile(emitter, node, method.handle, *arguments)


def join(emitter: Any, node: ast.AST, task: Value) -> Any:
    """`task.join()`."""
    result = task.type.element  # type: ignore[attr-defined]
    made = service(emitter, support.join, f", i64 {task.ir}", WORDS)
    place = service(emitter, support.words_of, f", ptr {made.ir}", WORDS)
    kinds = [computed(kind) for kind in scalars(result)]
    parts = [load_word(emitter, place.ir, position, kind) for position, kind in enumerate(kinds)]
    service(emitter, support.forget, f", ptr {made.ir}", t.VOID)
    return rebuilt(result, iter(parts))


def cancel(emitter: Any, node: ast.AST, task: Value) -> Any:
    """`task.cancel()`."""
    return service(emitter, support.cancel, f", i64 {task.ir}", t.VOID)


def room(emitter: Any, kind: t.Type) -> str:
    """Words in the kernel's frame for a value of a type."""
    return str(emitter.alloca("passed", t.U64, max(word_count(kind), 1)))


def deadline(emitter: Any, node: ast.AST, timeout: Any) -> Value:
    """When a wait of so many seconds ends; None: never."""
    if timeout is None:
        return Value("0", t.U64)
    seconds = emitter.promoted(timeout, t.F64, node)
    return service(emitter, support.deadline, f", double {seconds.ir}", t.U64)


def check(emitter: Any, node: ast.AST, result: Value, what: str) -> None:
    """Raise unless an operation of a channel was done."""
    closed = emitter.temporary(f"icmp eq i32 {result.ir}, {CLOSED}", t.BOOL)
    emitter.fail_if(closed, "ChannelClosed", "the channel is closed", node)
    late = emitter.temporary(f"icmp eq i32 {result.ir}, {TIMED_OUT}", t.BOOL)
    emitter.fail_if(late, "TimeoutError", f"nothing was {what} in time", node)
    other = emitter.temporary(f"icmp ne i32 {result.ir}, {OK}", t.BOOL)
    emitter.fail_if(other, "MemoryError", "no memory to wait with", node)


def send(emitter: Any, node: ast.AST, channel: Value, value: Any = None, timeout: Any = None) -> Any:
    """`channel.send(value)`."""
    element = channel.type.element  # type: ignore[attr-defined]
    place = room(emitter, element)
    if element != t.VOID:
        fitted = emitter.fitted(value, element, f"a {channel.type} sends {element}", node)
        store_words(emitter, place, [emitter.number(item, node) for item in flattened(fitted)])
    elif value is not None:
        emitter.error(f"a {channel.type} sends None", node)
    until = deadline(emitter, node, timeout)
    result = service(emitter, support.send, f", i64 {channel.ir}, ptr {place}, i64 {until.ir}", t.U32)
    check(emitter, node, result, "sent")
    return Value("", t.VOID)


def received(emitter: Any, element: t.Type, place: str) -> Any:
    """The value that was received."""
    kinds = [computed(kind) for kind in scalars(element)]
    return rebuilt(element, iter([load_word(emitter, place, i, kind) for i, kind in enumerate(kinds)]))


def receive(emitter: Any, node: ast.AST, channel: Value, timeout: Any = None) -> Any:
    """`channel.recv()`."""
    element = channel.type.element  # type: ignore[attr-defined]
    place = room(emitter, element)
    until = deadline(emitter, node, timeout)
    result = service(emitter, support.receive, f", i64 {channel.ir}, ptr {place}, i64 {until.ir}", t.U32)
    check(emitter, node, result, "received")
    return received(emitter, element, place)


def close(emitter: Any, node: ast.AST, channel: Value) -> Any:
    """`channel.close()`."""
    return service(emitter, support.close, f", i64 {channel.ir}", t.VOID)


TASK_METHODS: dict[str, tuple[Any, int, int]] = {"join": (join, 0, 0), "cancel": (cancel, 0, 0)}
CHANNEL_METHODS: dict[str, tuple[Any, int, int]] = {
    "send": (send, 0, 2),
    "recv": (receive, 0, 1),
    "close": (close, 0, 0),
}


def loop_over(emitter: Any, node: ast.For, channel: Value) -> None:
    """`for value in channel`."""
    emitter.calls = True
    element = channel.type.element  # type: ignore[attr-defined]
    place = room(emitter, element)
    again, body, after = (emitter.label(stem) for stem in ("again", "body", "after"))
    emitter.jump(again)
    emitter.start(again)
    emitter.poll()
    result = service(emitter, support.receive, f", i64 {channel.ir}, ptr {place}, i64 0", t.U32)
    some = emitter.temporary(f"icmp eq i32 {result.ir}, {OK}", t.BOOL)
    loop = Loop(again, after, [set(emitter.scope.assigned)])
    emitter.branch(some, body, after)
    emitter.start(body)
    if element != t.VOID:
        emitter.assign(node.target, received(emitter, element, place))
    elif not (isinstance(node.target, ast.Name) and node.target.id.startswith("_")):
        emitter.error(f"a {channel.type} gives None: name it `_`", node.target)
    emitter.loop_body(loop, node.body)
    emitter.jump(again)
    emitter.leave_loop(loop)
