"""The language Greenbeat's engine is written in: typed Python, compiled through LLVM to machine code."""

from greenbeat.native.build import build as build
from greenbeat.native.errors import NativeError as NativeError
from greenbeat.native.language import *  # noqa: F403
from greenbeat.native.linker import Library as Library
from greenbeat.native.types import (
    array as array,
    bool_ as bool_,
    ctypes_of as ctypes_of,
    f32 as f32,
    f64 as f64,
    function as function,
    i8 as i8,
    i16 as i16,
    i32 as i32,
    i64 as i64,
    offsetof as offsetof,
    ptr as ptr,
    sizeof as sizeof,
    struct as struct,
    u8 as u8,
    u16 as u16,
    u32 as u32,
    u64 as u64,
    v128 as v128,
    void as void,
)
