/* What every guest program here shares: how a function is exported, the short names of the integer types, and a small
 * generator of reproducible data. The guests are freestanding: no libc, no imports, so any engine runs them. */
#ifndef GREENBEAT_GUEST_H
#define GREENBEAT_GUEST_H

#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(#name), used))

typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

/* A 32-bit xorshift: the state must not be zero. The Python references carry the same three shifts. */
static inline u32 next_random(u32 *state) {
    u32 x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

/* Folds one word into a checksum: a rotation, so that order matters, and an odd multiplier, so that every bit does. */
static inline u32 fold(u32 sum, u32 word) {
    return ((sum << 5 | sum >> 27) ^ word) * 0x9E3779B1u;
}

#endif
