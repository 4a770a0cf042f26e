"""Control flow, calls, and what is decided at compile time."""

import ctypes
import threading
from typing import Any

import pytest
from hypothesis import given, strategies as st

from greenbeat.native import (
    addressof,
    build,
    cast,
    extern,
    f64,
    fill,
    function,
    i8,
    i32,
    i64,
    inline,
    likely,
    native,
    ptr,
    select,
    stack,
    static,
    table,
    tail,
    u8,
    u16,
    u32,
    u64,
    unlikely,
    unreachable,
    unroll,
    void,
)

I32 = st.integers(-(2**31), 2**31 - 1)


# ---------------------------------------------------------------- loops


@native
def collatz(n: u64) -> u64:
    steps: u64 = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def ranges(step: int) -> Any:
    @native
    def visit(first: i32, last: i32, out: ptr[i32]) -> i32:
        count: i32 = 0
        for i in range(first, last, step):
            if count == 64:
                break
            out[count] = i
            count += 1
        return count

    return visit


@native
def range_of_bytes(last: u8) -> i32:
    total: i32 = 0
    for i in range(u8(0), last, 100):
        total += i32(i)
    return total


@native
def nested_breaks(n: i32) -> i32:
    total: i32 = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        j: i32 = 0
        while True:
            j += 1
            if j > i:
                break
            if j == 7:
                continue
            total += j
    return total


@native
def loop_variable_is_a_copy(n: i32) -> i32:
    total: i32 = 0
    for i in range(n):
        total += i
        i = 1000
    return total


@native
def assigned_on_every_way_out(n: i32) -> i32:
    while True:
        if n > 10:
            found = 1
            break
        if n < -10:
            found = 2
            break
        n *= 2
        n += 1
    return i32(found)


VISITS = {step: ranges(step) for step in (1, 3, -1, -4, 2**30)}


# ---------------------------------------------------------------- branches


@native
def days(month: u32) -> i32:
    match month:
        case 2:
            return 28
        case 4 | 6 | 9 | 11:
            result = 30
        case 1 | 3 | 5 | 7 | 8 | 10 | 12:
            result = 31
        case _:
            return -1
    return i32(result)


@native
def signed_cases(x: i8) -> i32:
    y: i32 = 0
    match x:
        case -1:
            y = 1
        case 127:
            y = 2
        case -128:
            y = 3
    return y


calls = static(u32, name="calls")


@native(noinline=True)
def noted(value: bool) -> bool:
    calls[0] += 1
    return value


@native
def calls_for_and(a: bool, b: bool, c: bool) -> u32:
    calls[0] = 0
    result = noted(a) and noted(b) and noted(c)
    return calls[0] * 2 + u32(result)


@native
def calls_for_or(a: bool, b: bool, c: bool) -> u32:
    calls[0] = 0
    result = noted(a) or noted(b) or noted(c)
    return calls[0] * 2 + u32(result)


@native
def mixed(a: bool, b: bool, c: bool) -> bool:
    return (a and not b) or (c and likely(b) if unlikely(a) else not c)


@native
def conditional(x: i32) -> i64:
    a = 1 if x > 0 else -1
    b = x if x > 5 else 5
    c = select(x < 0, i32(7), 9)
    return a * 1_000_000 + i64(b) * 1000 + i64(c)


@native
def constants_in_conditions(x: i32) -> i32:
    total: i32 = 0
    if True and x > 0:
        total += 1
    if x > 0 or True:
        total += 2
    if False or x > 1 or False:
        total += 4
    if x > 2 and True and x > 3:
        total += 8
    return total


# ---------------------------------------------------------------- calls


@native
def double(x: i32) -> i32:
    return x * 2


@native
def square(x: i32) -> i32:
    return x * x


choices = table(function[[i32], i32], [double, square])


@native
def through_table(which: u32, x: i32) -> i32:
    return choices[which](x)


@native
def through_pointer(f: function[[i32], i32], x: i32) -> i32:
    g = addressof(double)
    return f(x) + g(x)


@native
def is_null(f: function[[i32], i32]) -> bool:
    return f is None


# 10^8 tail calls between functions that do real work on memory, in constant stack.
@native(noinline=True, convention="tailcc")
def ping(n: u64, at: ptr[u64], extra: u64) -> u64:
    at[0] = at[0] * 3 + extra
    if n == 0:
        return at[0]
    return tail(pong(n - 1, at))


@native(noinline=True, convention="tailcc")
def pong(n: u64, at: ptr[u64]) -> u64:
    at[0] ^= n
    if n == 0:
        return at[0]
    return tail(ping(n - 1, at, n & 1))


@native
def ping_pong(n: u64) -> u64:
    room = stack(u64)
    room[0] = 1
    return ping(n, room, 1)


@native
def c_convention_tail(n: u64, total: u64) -> u64:
    if n == 0:
        return total
    return tail(c_convention_other(n - 1, total + n))


@native
def c_convention_other(n: u64, total: u64) -> u64:
    return tail(c_convention_tail(n, total ^ 1))


@extern(variadic=True)
def snprintf(buffer: ptr[u8], size: u64, format: ptr[u8]) -> i32: ...


@extern
def qsort(base: ptr[void], count: u64, size: u64, compare: ptr[void]) -> None: ...


@native
def formatted(buffer: ptr[u8], size: u64, n: u8, x: f64) -> i32:
    return snprintf(buffer, size, "%d %.2f %s %ld", n, x, b"text", -5)


@native
def by_value(a: ptr[void], b: ptr[void]) -> i32:
    x, y = cast(ptr[i32], a)[0], cast(ptr[i32], b)[0]
    return i32(x > y) - i32(x < y)


@native
def sort(numbers: ptr[i32], count: u64) -> None:
    qsort(numbers, count, 4, by_value)


# ---------------------------------------------------------------- expansion


@inline
def apply_twice(operation, value):
    return operation(operation(value))


@inline
def clamp(value, least, greatest):
    if value < least:
        return least
    if value > greatest:
        return greatest
    return value


@inline
def stop_if(condition):
    if not condition:
        return
    if condition:
        return


@inline
def endless(reason):
    unreachable()


@native
def expanded(x: i32) -> i32:
    stop_if(x > 3)
    y = clamp(apply_twice(double, x), i32(-100), i32(100))
    return apply_twice(square, 2) * 1000 + y


@native
def one_side_ends(x: i32) -> i32:
    y = x if x > 0 else endless(x)
    return y if x > 0 and (x < 100 or endless(x)) else 0


def power(exponent: int) -> Any:
    """A template: the exponent is known when the function is compiled."""

    @native
    def specialised(x: u64) -> u64:
        result: u64 = 1
        for bit in unroll(reversed(bin(exponent)[2:])):
            if bit == "1":
                result *= x
            x *= x
        return result

    return specialised


POWERS = {n: power(n) for n in (0, 1, 5, 13)}
NAMES = ["zero", "one", "two"]
CONSTANT = 6 * 7


@native
def compile_time(x: i32) -> i32:
    total: i32 = CONSTANT
    for index, name in unroll(enumerate(NAMES)):
        if name == "two":
            continue
        total += len(name) * (index + 1)
        if x == index:
            break
        total += 100
    return total + int(f"{CONSTANT}1") + max(1, 2, 3)


@native
def local_of_text() -> u8:
    text = cast(ptr[u8], "héllo")
    return text[0] + text[2]


# ---------------------------------------------------------------- statics


counter = static(u64, 41, name="counter")
squares = table(u16, [i * i for i in range(20)])
fractions = table(f64, [0.5, 0.25, 1])
room = static(function[[i32], i32], name="room")


@native
def count_up() -> u64:
    counter[0] += 1
    return counter[0]


@native
def look_up(i: u32) -> f64:
    return f64(squares[i]) * fractions[1]


@native
def set_and_call(x: i32) -> i32:
    if room[0] is None:
        room[0] = square
    return room[0](x)


@native
def stack_room(n: u32) -> u32:
    bytes = stack(u8, 100)
    fill(bytes, 0xFF, 100)
    words = cast(ptr[u32], bytes)
    words[n] -= 1
    return words[n]


LIBRARY = build(
    [
        *[collatz, *VISITS.values(), range_of_bytes, nested_breaks, loop_variable_is_a_copy, assigned_on_every_way_out],
        *[days, signed_cases, calls_for_and, calls_for_or, mixed, conditional, constants_in_conditions],
        *[through_table, through_pointer, is_null, ping_pong, c_convention_tail, formatted, sort, double],
        *[expanded, one_side_ends, *POWERS.values(), compile_time, local_of_text],
        *[count_up, look_up, set_and_call, stack_room],
    ],
    statics=[counter, squares],
)


def call(function: Any, *arguments: Any) -> Any:
    return LIBRARY.function(function)(*arguments)


def test_while() -> None:
    assert call(collatz, 27) == 111


@given(first=st.integers(-50, 50), last=st.integers(-50, 50))
def test_ranges_are_those_of_python(first: int, last: int) -> None:
    out = (ctypes.c_int32 * 64)()
    for step, visit in VISITS.items():
        count = call(visit, first, last, out)
        assert list(out[:count]) == list(range(first, last, step))[:64]


def test_ranges_end_where_the_type_ends() -> None:
    out = (ctypes.c_int32 * 64)()
    assert call(VISITS[3], 2**31 - 5, 2**31 - 1, out) == 2
    assert call(VISITS[2**30], -(2**31), 2**31 - 1, out) == 4
    assert call(range_of_bytes, 255) == 300


def test_break_and_continue() -> None:
    expected = sum(j for i in range(20) if i % 3 for j in range(1, i + 1) if j != 7)
    assert call(nested_breaks, 20) == expected
    assert call(loop_variable_is_a_copy, 10) == 45
    assert [call(assigned_on_every_way_out, n) for n in (3, -9)] == [1, 2]


def test_match() -> None:
    assert [call(days, m) for m in (2, 4, 12, 13, 0)] == [28, 30, 31, -1, -1]
    assert [call(signed_cases, x) for x in (-1, 127, -128, 5)] == [1, 2, 3, 0]


def test_match_is_a_jump_table() -> None:
    from greenbeat.native.build import compile_text
    from greenbeat.native.targets import host_machine
    from greenbeat.native.unit import Unit

    @native
    def dense(x: u32, p: ptr[u32]) -> u32:
        match x:
            case 0:
                p[0] = 3
            case 1:
                p[1] += 9
            case 2:
                p[2] = x
            case 3:
                p[7] ^= 2
            case 4:
                return p[0] + p[1]
        return p[0]

    root: Any = dense
    root.shared = True
    assembly = compile_text(Unit("test", [root]).text(), host_machine(), assembly=True).decode()
    assert "jmpq\t*" in assembly or "br\tx" in assembly


@given(st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_and_or_stop_early(values: tuple[bool, bool, bool]) -> None:
    a, b, c = values
    assert call(calls_for_and, a, b, c) == (1 if not a else 2 if not b else 3) * 2 + (a and b and c)
    assert call(calls_for_or, a, b, c) == (1 if a else 2 if b else 3) * 2 + (a or b or c)
    assert call(mixed, a, b, c) == ((a and not b) or ((c and b) if a else not c))


@pytest.mark.parametrize("x", [-3, 0, 2, 3, 5, 9])
def test_conditional_expressions(x: int) -> None:
    assert call(conditional, x) == (1 if x > 0 else -1) * 1_000_000 + max(x, 5) * 1000 + (7 if x < 0 else 9)
    assert call(constants_in_conditions, x) == (x > 0) + 2 + 4 * (x > 1) + 8 * (x > 3)


def test_function_pointers() -> None:
    assert [call(through_table, i, 9) for i in (0, 1)] == [18, 81]
    assert call(through_pointer, LIBRARY.addresses[double.symbol], 5) == 20  # type: ignore[attr-defined]
    callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(lambda x: x + 1)
    assert call(through_pointer, ctypes.cast(callback, ctypes.c_void_p), 5) == 16
    assert call(is_null, None) is True


def test_tail_calls_need_no_stack() -> None:
    at, n = 1, 999
    for i in range(n + 1):
        at = (at * 3 + (1 if i == 0 else (n - i + 1) & 1)) % 2**64 if i % 2 == 0 else at ^ (n - i)
    assert call(ping_pong, 999) == at
    sizes = []

    def deep() -> None:
        sizes.append(call(ping_pong, 10**8))

    threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=deep)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
    assert sizes
    assert call(c_convention_tail, 10**7, 0) > 0


def test_c_functions() -> None:
    buffer = ctypes.create_string_buffer(64)
    assert call(formatted, buffer, 64, 200, 2.5) == 16
    assert buffer.value == b"200 2.50 text -5"
    numbers = (ctypes.c_int32 * 6)(5, -1, 3, 2**31 - 1, 0, -7)
    call(sort, numbers, 6)
    assert list(numbers) == sorted(numbers)


@given(I32)
def test_inline_functions(x: int) -> None:
    y = (x * 4 + 2**31) % 2**32 - 2**31
    assert call(expanded, x) == 16_000 + max(-100, min(100, y))


def test_a_side_that_never_ends() -> None:
    assert call(one_side_ends, 50) == 50


def test_templates() -> None:
    for n, function_of_n in POWERS.items():
        assert call(function_of_n, 3) == 3**n


def test_compile_time_values() -> None:
    def expected(x: int) -> int:
        total = 42
        for index, name in enumerate(NAMES):
            if name == "two":
                continue
            total += len(name) * (index + 1)
            if x == index:
                break
            total += 100
        return total + 421 + 3

    for x in range(-1, 4):
        assert call(compile_time, x) == expected(x)
    assert call(local_of_text) == (ord("h") + "é".encode()[1]) % 256


def test_statics_and_tables() -> None:
    assert [call(count_up), call(count_up)] == [42, 43]
    address = LIBRARY.addresses[counter.symbol]
    assert ctypes.c_uint64.from_address(address).value == 43
    assert call(look_up, 9) == 81 * 0.25
    assert [call(set_and_call, x) for x in (4, 5)] == [16, 25]
    assert call(stack_room, 24) == 0xFFFFFFFE
