"""Every instruction of the text format: its name, its opcode and what immediates follow the name.

The tables follow the specification (Text Format, Instructions; appendix, Index of Instructions). A row gives the first
opcode, the sort of immediate, and names with consecutive opcodes, where `-` leaves one out. Behind the name of a memory
instruction stands, after a slash, how many bytes it accesses, which is its natural alignment. Structured control
instructions are here too, under the immediate `BLOCK`; what closes them is up to the expression parser.

A proposal that brings more instructions brings more rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from .encode import unsigned


class Immediate(Enum):
    """What follows the name of an instruction."""

    NONE = auto()
    BLOCK = auto()
    LABEL = auto()
    LABEL_TABLE = auto()
    FUNCTION = auto()
    TYPE = auto()
    CALL_INDIRECT = auto()
    SELECT = auto()
    LOCAL = auto()
    GLOBAL = auto()
    TABLE = auto()
    TABLE_COPY = auto()
    TABLE_INIT = auto()
    ELEMENT = auto()
    MEMORY = auto()
    MEMORY_COPY = auto()
    MEMORY_INIT = auto()
    DATA = auto()
    ACCESS = auto()
    ACCESS_LANE = auto()
    LANE = auto()
    SHUFFLE = auto()
    I32 = auto()
    I64 = auto()
    F32 = auto()
    F64 = auto()
    V128 = auto()
    HEAP_TYPE = auto()
    REFERENCE_TYPE = auto()
    CAST_BRANCH = auto()
    TYPE_FIELD = auto()
    TYPE_COUNT = auto()
    TYPE_DATA = auto()
    TYPE_ELEMENT = auto()
    TYPE_TYPE = auto()
    TAG = auto()
    ZERO = auto()


@dataclass(frozen=True, slots=True)
class Instruction:
    """A row of the table."""

    name: str
    opcode: bytes
    immediate: Immediate
    access: int = 0
    """How many bytes of memory the instruction accesses, or 0."""


_PLAIN: list[tuple[int, Immediate, str]] = [
    (0x00, Immediate.NONE, "unreachable nop"),
    (0x02, Immediate.BLOCK, "block loop if"),
    (0x08, Immediate.TAG, "throw"),
    (0x0A, Immediate.NONE, "throw_ref"),
    (0x0C, Immediate.LABEL, "br br_if"),
    (0x0E, Immediate.LABEL_TABLE, "br_table"),
    (0x0F, Immediate.NONE, "return"),
    (0x10, Immediate.FUNCTION, "call - return_call"),
    (0x11, Immediate.CALL_INDIRECT, "call_indirect - return_call_indirect"),
    (0x14, Immediate.TYPE, "call_ref return_call_ref"),
    (0x1A, Immediate.NONE, "drop"),
    (0x1B, Immediate.SELECT, "select"),
    (0x1F, Immediate.BLOCK, "try_table"),
    (0x20, Immediate.LOCAL, "local.get local.set local.tee"),
    (0x23, Immediate.GLOBAL, "global.get global.set"),
    (0x25, Immediate.TABLE, "table.get table.set"),
    (0x28, Immediate.ACCESS, "i32.load/4 i64.load/8 f32.load/4 f64.load/8"),
    (0x2C, Immediate.ACCESS, "i32.load8_s/1 i32.load8_u/1 i32.load16_s/2 i32.load16_u/2"),
    (0x30, Immediate.ACCESS, "i64.load8_s/1 i64.load8_u/1 i64.load16_s/2"),
    (0x33, Immediate.ACCESS, "i64.load16_u/2 i64.load32_s/4 i64.load32_u/4"),
    (0x36, Immediate.ACCESS, "i32.store/4 i64.store/8 f32.store/4 f64.store/8"),
    (0x3A, Immediate.ACCESS, "i32.store8/1 i32.store16/2 i64.store8/1 i64.store16/2 i64.store32/4"),
    (0x3F, Immediate.MEMORY, "memory.size memory.grow"),
    (0x41, Immediate.I32, "i32.const"),
    (0x42, Immediate.I64, "i64.const"),
    (0x43, Immediate.F32, "f32.const"),
    (0x44, Immediate.F64, "f64.const"),
    (0x45, Immediate.NONE, "i32.eqz i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s"),
    (0x4B, Immediate.NONE, "i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u"),
    (0x50, Immediate.NONE, "i64.eqz i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s"),
    (0x56, Immediate.NONE, "i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u"),
    (0x5B, Immediate.NONE, "f32.eq f32.ne f32.lt f32.gt f32.le f32.ge"),
    (0x61, Immediate.NONE, "f64.eq f64.ne f64.lt f64.gt f64.le f64.ge"),
    (0x67, Immediate.NONE, "i32.clz i32.ctz i32.popcnt i32.add i32.sub"),
    (0x6C, Immediate.NONE, "i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u"),
    (0x71, Immediate.NONE, "i32.and i32.or i32.xor i32.shl i32.shr_s i32.shr_u i32.rotl i32.rotr"),
    (0x79, Immediate.NONE, "i64.clz i64.ctz i64.popcnt i64.add i64.sub"),
    (0x7E, Immediate.NONE, "i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u"),
    (0x83, Immediate.NONE, "i64.and i64.or i64.xor i64.shl i64.shr_s i64.shr_u i64.rotl i64.rotr"),
    (0x8B, Immediate.NONE, "f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt"),
    (0x92, Immediate.NONE, "f32.add f32.sub f32.mul f32.div f32.min f32.max f32.copysign"),
    (0x99, Immediate.NONE, "f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt"),
    (0xA0, Immediate.NONE, "f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign"),
    (0xA7, Immediate.NONE, "i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u"),
    (0xAC, Immediate.NONE, "i64.extend_i32_s i64.extend_i32_u"),
    (0xAE, Immediate.NONE, "i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s i64.trunc_f64_u"),
    (0xB2, Immediate.NONE, "f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64"),
    (0xB7, Immediate.NONE, "f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32"),
    (0xBC, Immediate.NONE, "i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64"),
    (0xC0, Immediate.NONE, "i32.extend8_s i32.extend16_s i64.extend8_s i64.extend16_s i64.extend32_s"),
    (0xD0, Immediate.HEAP_TYPE, "ref.null"),
    (0xD1, Immediate.NONE, "ref.is_null"),
    (0xD2, Immediate.FUNCTION, "ref.func"),
    (0xD3, Immediate.NONE, "ref.eq ref.as_non_null"),
    (0xD5, Immediate.LABEL, "br_on_null br_on_non_null"),
]

# Behind the byte 0xFB: garbage-collected objects.
_OBJECTS: list[tuple[int, Immediate, str]] = [
    (0, Immediate.TYPE, "struct.new struct.new_default"),
    (2, Immediate.TYPE_FIELD, "struct.get struct.get_s struct.get_u struct.set"),
    (6, Immediate.TYPE, "array.new array.new_default"),
    (8, Immediate.TYPE_COUNT, "array.new_fixed"),
    (9, Immediate.TYPE_DATA, "array.new_data"),
    (10, Immediate.TYPE_ELEMENT, "array.new_elem"),
    (11, Immediate.TYPE, "array.get array.get_s array.get_u array.set"),
    (15, Immediate.NONE, "array.len"),
    (16, Immediate.TYPE, "array.fill"),
    (17, Immediate.TYPE_TYPE, "array.copy"),
    (18, Immediate.TYPE_DATA, "array.init_data"),
    (19, Immediate.TYPE_ELEMENT, "array.init_elem"),
    (20, Immediate.REFERENCE_TYPE, "ref.test - ref.cast"),
    (24, Immediate.CAST_BRANCH, "br_on_cast br_on_cast_fail"),
    (26, Immediate.NONE, "any.convert_extern extern.convert_any ref.i31 i31.get_s i31.get_u"),
]

# Behind the byte 0xFC: saturating conversions, bulk operations, 128-bit arithmetic.
_MISCELLANEOUS: list[tuple[int, Immediate, str]] = [
    (0, Immediate.NONE, "i32.trunc_sat_f32_s i32.trunc_sat_f32_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u"),
    (4, Immediate.NONE, "i64.trunc_sat_f32_s i64.trunc_sat_f32_u i64.trunc_sat_f64_s i64.trunc_sat_f64_u"),
    (8, Immediate.MEMORY_INIT, "memory.init"),
    (9, Immediate.DATA, "data.drop"),
    (10, Immediate.MEMORY_COPY, "memory.copy"),
    (11, Immediate.MEMORY, "memory.fill"),
    (12, Immediate.TABLE_INIT, "table.init"),
    (13, Immediate.ELEMENT, "elem.drop"),
    (14, Immediate.TABLE_COPY, "table.copy"),
    (15, Immediate.TABLE, "table.grow table.size table.fill"),
    (19, Immediate.NONE, "i64.add128 i64.sub128 i64.mul_wide_s i64.mul_wide_u"),
]

# Behind the byte 0xFD: vectors. `*` stands for the shape at the head of the row.
_VECTORS: list[tuple[int, Immediate, str]] = [
    (0, Immediate.ACCESS, "v128.load/16 v128.load8x8_s/8 v128.load8x8_u/8 v128.load16x4_s/8 v128.load16x4_u/8"),
    (5, Immediate.ACCESS, "v128.load32x2_s/8 v128.load32x2_u/8"),
    (7, Immediate.ACCESS, "v128.load8_splat/1 v128.load16_splat/2 v128.load32_splat/4"),
    (10, Immediate.ACCESS, "v128.load64_splat/8 v128.store/16"),
    (12, Immediate.V128, "v128.const"),
    (13, Immediate.SHUFFLE, "i8x16.shuffle"),
    (14, Immediate.NONE, "i8x16.swizzle i8x16.splat i16x8.splat i32x4.splat i64x2.splat f32x4.splat f64x2.splat"),
    (21, Immediate.LANE, "i8x16.extract_lane_s i8x16.extract_lane_u i8x16.replace_lane"),
    (24, Immediate.LANE, "i16x8.extract_lane_s i16x8.extract_lane_u i16x8.replace_lane"),
    (27, Immediate.LANE, "i32x4.extract_lane i32x4.replace_lane i64x2.extract_lane i64x2.replace_lane"),
    (31, Immediate.LANE, "f32x4.extract_lane f32x4.replace_lane f64x2.extract_lane f64x2.replace_lane"),
    (35, Immediate.NONE, "i8x16: *.eq *.ne *.lt_s *.lt_u *.gt_s *.gt_u *.le_s *.le_u *.ge_s *.ge_u"),
    (45, Immediate.NONE, "i16x8: *.eq *.ne *.lt_s *.lt_u *.gt_s *.gt_u *.le_s *.le_u *.ge_s *.ge_u"),
    (55, Immediate.NONE, "i32x4: *.eq *.ne *.lt_s *.lt_u *.gt_s *.gt_u *.le_s *.le_u *.ge_s *.ge_u"),
    (65, Immediate.NONE, "f32x4: *.eq *.ne *.lt *.gt *.le *.ge"),
    (71, Immediate.NONE, "f64x2: *.eq *.ne *.lt *.gt *.le *.ge"),
    (77, Immediate.NONE, "v128: *.not *.and *.andnot *.or *.xor *.bitselect *.any_true"),
    (84, Immediate.ACCESS_LANE, "v128.load8_lane/1 v128.load16_lane/2 v128.load32_lane/4 v128.load64_lane/8"),
    (88, Immediate.ACCESS_LANE, "v128.store8_lane/1 v128.store16_lane/2 v128.store32_lane/4 v128.store64_lane/8"),
    (92, Immediate.ACCESS, "v128.load32_zero/4 v128.load64_zero/8"),
    (94, Immediate.NONE, "f32x4.demote_f64x2_zero f64x2.promote_low_f32x4"),
    (96, Immediate.NONE, "i8x16: *.abs *.neg *.popcnt *.all_true *.bitmask *.narrow_i16x8_s *.narrow_i16x8_u"),
    (103, Immediate.NONE, "f32x4: *.ceil *.floor *.trunc *.nearest"),
    (107, Immediate.NONE, "i8x16: *.shl *.shr_s *.shr_u *.add *.add_sat_s *.add_sat_u *.sub *.sub_sat_s *.sub_sat_u"),
    (116, Immediate.NONE, "f64x2.ceil f64x2.floor"),
    (118, Immediate.NONE, "i8x16.min_s i8x16.min_u i8x16.max_s i8x16.max_u f64x2.trunc i8x16.avgr_u"),
    (124, Immediate.NONE, "i16x8.extadd_pairwise_i8x16_s i16x8.extadd_pairwise_i8x16_u"),
    (126, Immediate.NONE, "i32x4.extadd_pairwise_i16x8_s i32x4.extadd_pairwise_i16x8_u"),
    (128, Immediate.NONE, "i16x8: *.abs *.neg *.q15mulr_sat_s *.all_true *.bitmask *.narrow_i32x4_s *.narrow_i32x4_u"),
    (135, Immediate.NONE, "i16x8: *.extend_low_i8x16_s *.extend_high_i8x16_s"),
    (137, Immediate.NONE, "i16x8: *.extend_low_i8x16_u *.extend_high_i8x16_u"),
    (139, Immediate.NONE, "i16x8: *.shl *.shr_s *.shr_u *.add *.add_sat_s *.add_sat_u *.sub *.sub_sat_s *.sub_sat_u"),
    (148, Immediate.NONE, "f64x2.nearest"),
    (149, Immediate.NONE, "i16x8: *.mul *.min_s *.min_u *.max_s *.max_u - *.avgr_u"),
    (156, Immediate.NONE, "i16x8: *.extmul_low_i8x16_s *.extmul_high_i8x16_s"),
    (158, Immediate.NONE, "i16x8: *.extmul_low_i8x16_u *.extmul_high_i8x16_u"),
    (160, Immediate.NONE, "i32x4: *.abs *.neg - *.all_true *.bitmask"),
    (167, Immediate.NONE, "i32x4: *.extend_low_i16x8_s *.extend_high_i16x8_s"),
    (169, Immediate.NONE, "i32x4: *.extend_low_i16x8_u *.extend_high_i16x8_u"),
    (171, Immediate.NONE, "i32x4: *.shl *.shr_s *.shr_u *.add - - *.sub - - - *.mul *.min_s *.min_u *.max_s *.max_u"),
    (186, Immediate.NONE, "i32x4.dot_i16x8_s"),
    (188, Immediate.NONE, "i32x4: *.extmul_low_i16x8_s *.extmul_high_i16x8_s"),
    (190, Immediate.NONE, "i32x4: *.extmul_low_i16x8_u *.extmul_high_i16x8_u"),
    (192, Immediate.NONE, "i64x2: *.abs *.neg - *.all_true *.bitmask"),
    (199, Immediate.NONE, "i64x2: *.extend_low_i32x4_s *.extend_high_i32x4_s"),
    (201, Immediate.NONE, "i64x2: *.extend_low_i32x4_u *.extend_high_i32x4_u"),
    (203, Immediate.NONE, "i64x2: *.shl *.shr_s *.shr_u *.add - - *.sub - - - *.mul"),
    (214, Immediate.NONE, "i64x2: *.eq *.ne *.lt_s *.gt_s *.le_s *.ge_s"),
    (220, Immediate.NONE, "i64x2: *.extmul_low_i32x4_s *.extmul_high_i32x4_s"),
    (222, Immediate.NONE, "i64x2: *.extmul_low_i32x4_u *.extmul_high_i32x4_u"),
    (224, Immediate.NONE, "f32x4: *.abs *.neg - *.sqrt *.add *.sub *.mul *.div *.min *.max *.pmin *.pmax"),
    (236, Immediate.NONE, "f64x2: *.abs *.neg - *.sqrt *.add *.sub *.mul *.div *.min *.max *.pmin *.pmax"),
    (248, Immediate.NONE, "i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u"),
    (250, Immediate.NONE, "f32x4.convert_i32x4_s f32x4.convert_i32x4_u"),
    (252, Immediate.NONE, "i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero"),
    (254, Immediate.NONE, "f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u"),
    (256, Immediate.NONE, "i8x16.relaxed_swizzle i32x4.relaxed_trunc_f32x4_s i32x4.relaxed_trunc_f32x4_u"),
    (259, Immediate.NONE, "i32x4.relaxed_trunc_f64x2_s_zero i32x4.relaxed_trunc_f64x2_u_zero"),
    (261, Immediate.NONE, "f32x4.relaxed_madd f32x4.relaxed_nmadd f64x2.relaxed_madd f64x2.relaxed_nmadd"),
    (265, Immediate.NONE, "i8x16.relaxed_laneselect i16x8.relaxed_laneselect"),
    (267, Immediate.NONE, "i32x4.relaxed_laneselect i64x2.relaxed_laneselect"),
    (269, Immediate.NONE, "f32x4.relaxed_min f32x4.relaxed_max f64x2.relaxed_min f64x2.relaxed_max"),
    (273, Immediate.NONE, "i16x8.relaxed_q15mulr_s i16x8.relaxed_dot_i8x16_i7x16_s"),
    (275, Immediate.NONE, "i32x4.relaxed_dot_i8x16_i7x16_add_s"),
]

# Behind the byte 0xFE: atomics.
_ATOMICS: list[tuple[int, Immediate, str]] = [
    (0, Immediate.ACCESS, "memory.atomic.notify/4 memory.atomic.wait32/4 memory.atomic.wait64/8"),
    (3, Immediate.ZERO, "atomic.fence"),
    (0x10, Immediate.ACCESS, "i32.atomic.load/4 i64.atomic.load/8 i32.atomic.load8_u/1 i32.atomic.load16_u/2"),
    (0x14, Immediate.ACCESS, "i64.atomic.load8_u/1 i64.atomic.load16_u/2 i64.atomic.load32_u/4"),
    (0x17, Immediate.ACCESS, "i32.atomic.store/4 i64.atomic.store/8 i32.atomic.store8/1 i32.atomic.store16/2"),
    (0x1B, Immediate.ACCESS, "i64.atomic.store8/1 i64.atomic.store16/2 i64.atomic.store32/4"),
]
_ATOMIC_UPDATES = "add sub and or xor xchg cmpxchg"
_FIRST_ATOMIC_UPDATE = 0x1E


def _atomic_update(operator: str) -> str:
    """The names of the seven instructions for one read-modify-write operator."""
    widths = ("i32.atomic.rmw8", 1), ("i32.atomic.rmw16", 2)
    widths_64 = ("i64.atomic.rmw8", 1), ("i64.atomic.rmw16", 2), ("i64.atomic.rmw32", 4)
    whole = f"i32.atomic.rmw.{operator}/4 i64.atomic.rmw.{operator}/8"
    return " ".join([whole, *(f"{prefix}.{operator}_u/{size}" for prefix, size in widths + widths_64)])


def _build() -> dict[str, Instruction]:
    atomics = _ATOMICS + [
        (_FIRST_ATOMIC_UPDATE + 7 * number, Immediate.ACCESS, _atomic_update(operator))
        for number, operator in enumerate(_ATOMIC_UPDATES.split())
    ]
    table: dict[str, Instruction] = {}
    families = [(b"\xfb", _OBJECTS), (b"\xfc", _MISCELLANEOUS), (b"\xfd", _VECTORS), (b"\xfe", atomics)]
    for prefix, rows in [(b"", _PLAIN), *families]:
        for first, immediate, row in rows:
            shape, _, names = row.rpartition(": ")
            for number, entry in enumerate(names.replace("*", shape).split(), first):
                name, _, access = entry.partition("/")
                # A plain opcode is a byte; behind a prefix it is an integer in LEB128.
                opcode = prefix + unsigned(number) if prefix else bytes([number])
                if name != "-":
                    table[name] = Instruction(name, opcode, immediate, int(access or "0"))
    return table


INSTRUCTIONS = _build()
