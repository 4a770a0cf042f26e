/* bulk: n rounds of memory.copy and memory.fill in a buffer of 256 KiB, mostly short ones, now and then a long one, the
 * copies overlapping as chance has it. Built with bulk memory operations: each builtin below is one instruction. */
#include "guest.h"

#define LENGTH 262144
#define LONGEST 16384

static u8 buffer[LENGTH];

EXPORT(run) i32 run(i32 n) {
    u32 random = 17;
    for (u32 i = 0; i < LENGTH; i++) buffer[i] = (u8)(next_random(&random) >> 8);
    for (i32 round = 0; round < n; round++) {
        u32 choice = next_random(&random) >> 4;
        u32 length = choice & 31 ? choice >> 5 & 127 : choice >> 5 & (LONGEST - 1);
        u32 to = (next_random(&random) >> 4) % (LENGTH - LONGEST);
        u32 from = (next_random(&random) >> 4) % (LENGTH - LONGEST);
        if (choice & 1u << 20)
            __builtin_memmove(buffer + to, buffer + from, length);
        else
            __builtin_memset(buffer + to, (u8)(from & 255), length);
    }
    u32 sum = 0;
    for (u32 i = 0; i < LENGTH; i += 61) sum = fold(sum, buffer[i]);
    return (i32)sum;
}
