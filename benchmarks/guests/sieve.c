/* sieve: the sieve of Eratosthenes, n times over slightly different ranges. Byte loads and stores in short loops. */
#include "guest.h"

#define LARGEST (1 << 17)

static u8 composite[LARGEST];

EXPORT(run) i32 run(i32 n) {
    u32 sum = 0;
    for (i32 round = 0; round < n; round++) {
        u32 limit = LARGEST - (u32)(round & 63);
        for (u32 i = 0; i < limit; i++) composite[i] = 0;
        u32 count = 0, last = 0;
        for (u32 i = 2; i < limit; i++) {
            if (composite[i]) continue;
            count++;
            last = i;
            for (u64 multiple = (u64)i * i; multiple < limit; multiple += i) composite[multiple] = 1;
        }
        sum = fold(fold(sum, count), last);
    }
    return (i32)sum;
}
