/* What the guest programs of the tests share: exports, short integer names, and a buffer through which a test hands a
 * program its input and reads its output. The programs are freestanding: no libc, no imports. */
#ifndef GREENBEAT_TEST_GUEST_H
#define GREENBEAT_TEST_GUEST_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(#name), used))

typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define BUFFER_BYTES 65536

static u8 input[BUFFER_BYTES], output[BUFFER_BYTES];

EXPORT(input_address) u8 *input_address(void) { return input; }
EXPORT(output_address) u8 *output_address(void) { return output; }

#endif
