"""What a failed assertion of the checked build does: say where, and end the process."""

from greenbeat.native.language import extern, native
from greenbeat.native.types import i32, i64, ptr, u8, u64, void


@extern
def write(descriptor: i32, text: ptr[void], size: u64) -> i64: ...


@extern(attributes="noreturn")
def abort() -> None: ...


@extern
def strlen(text: ptr[u8]) -> u64: ...


@native(cold=True)
def assertion_failed(text: ptr[u8]) -> None:
    write(2, text, strlen(text))
    abort()
