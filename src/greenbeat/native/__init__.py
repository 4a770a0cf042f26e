"""The language Greenbeat's engine is written in: typed Python, compiled through LLVM to machine code."""

from greenbeat.native.build import Library, build
from greenbeat.native.errors import NativeError
from greenbeat.native.language import *  # noqa: F403
from greenbeat.native.types import (
    array,
    bool_,
    ctypes_of,
    f32,
    f64,
    function,
    i8,
    i16,
    i32,
    i64,
    offsetof,
    ptr,
    sizeof,
    struct,
    u8,
    u16,
    u32,
    u64,
    v128,
    void,
)
