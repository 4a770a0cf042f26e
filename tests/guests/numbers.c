/* numbers: one export for each arithmetic corner where engines go wrong: counting bits, rotations, shifts past the
 * width, rounding, signed zero, conversions that saturate, and conversions between floats and integers of 64 bits. */
#include "guest.h"

EXPORT(leading_zeros) i32 leading_zeros(u32 x) { return x ? __builtin_clz(x) : 32; }
EXPORT(trailing_zeros) i32 trailing_zeros(u64 x) { return x ? __builtin_ctzll(x) : 64; }
EXPORT(count_ones) i32 count_ones(u64 x) { return __builtin_popcountll(x); }
EXPORT(rotate_left) u32 rotate_left(u32 x, u32 by) { return x << (by & 31) | x >> (-by & 31); }
EXPORT(rotate_right) u64 rotate_right(u64 x, u64 by) { return x >> (by & 63) | x << (-by & 63); }
EXPORT(shift_arithmetic) i64 shift_arithmetic(i64 x, i64 by) { return x >> (by & 63); }
EXPORT(extend_byte) i32 extend_byte(i32 x) { return (int8_t)x; }
EXPORT(extend_word) i64 extend_word(i64 x) { return (int32_t)x; }

EXPORT(round_even) double round_even(double x) { return __builtin_rint(x); }
EXPORT(round_down) double round_down(double x) { return __builtin_floor(x); }
EXPORT(round_up) float round_up(float x) { return __builtin_ceilf(x); }
EXPORT(cut) double cut(double x) { return __builtin_trunc(x); }
EXPORT(root) float root(float x) { return __builtin_sqrtf(x); }
EXPORT(with_sign) double with_sign(double x, double sign) { return __builtin_copysign(x, sign); }
EXPORT(magnitude) double magnitude(double x) { return __builtin_fabs(x); }

EXPORT(to_i32) i32 to_i32(double x) { return __builtin_wasm_trunc_saturate_s_i32_f64(x); }
EXPORT(to_u64) u64 to_u64(float x) { return (u64)__builtin_wasm_trunc_saturate_u_i64_f32(x); }
EXPORT(from_u64) double from_u64(u64 x) { return (double)x; }
EXPORT(from_i64) float from_i64(i64 x) { return (float)x; }
EXPORT(demote) float demote(double x) { return (float)x; }
EXPORT(bits) u64 bits(double x) {
    union { double value; u64 bits; } view = {x};
    return view.bits;
}
EXPORT(less) i32 less(double a, double b) { return a < b; }
EXPORT(not_greater) i32 not_greater(double a, double b) { return !(a > b); }
