/* indirect: a program of 256 random steps, each a call through a table of 16 functions, n times. call_indirect with its
 * signature check, and functions too short to hide its cost. */
#include "guest.h"

#define STEPS 256

typedef u32 (*step_function)(u32 value, u32 operand);

#define STEP(name, expression) \
    static __attribute__((noinline)) u32 name(u32 value, u32 operand) { return expression; }

STEP(add, value + operand)
STEP(subtract, value - operand)
STEP(exclusive_or, value ^ operand)
STEP(multiply, value * (operand | 1))
STEP(rotate_left, value << (operand & 31) | value >> (-operand & 31))
STEP(shift_right, (value >> (operand & 31)) + operand)
STEP(keep_low, (value & 0xFFFF) * 0x10001u + operand)
STEP(swap_halves, (value << 16 | value >> 16) + operand)
STEP(negate, operand - value)
STEP(invert, ~value + operand)
STEP(square, value * value + operand)
STEP(either, value | operand)
STEP(both, (value & ~operand) + 1)
STEP(smaller, value < operand ? value + 1 : operand)
STEP(halve, (value >> 1) + (operand >> 1))
STEP(mix, (value ^ value >> 15) * 0x2C1B3C6Du + operand)

static const step_function functions[16] = {add, subtract, exclusive_or, multiply, rotate_left, shift_right,
                                            keep_low, swap_halves, negate, invert, square, either,
                                            both, smaller, halve, mix};
static u8 program[STEPS];

EXPORT(run) i32 run(i32 n) {
    u32 random = 13, value = 1;
    for (u32 i = 0; i < STEPS; i++) program[i] = (u8)(next_random(&random) >> 8 & 15);
    for (i32 round = 0; round < n; round++)
        for (u32 i = 0; i < STEPS; i++) value = functions[program[i]](value, i + (u32)round);
    return (i32)value;
}
