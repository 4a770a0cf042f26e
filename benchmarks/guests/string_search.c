/* string_search: counts the occurrences of n patterns in a text of 32 KiB over a small alphabet, by Horspool's
 * algorithm. Every pattern is a piece of the text. Data-dependent branches, byte loads, and loops of a few turns. */
#include "guest.h"

#define LENGTH 32768

static u8 text[LENGTH];
static u32 skip[256];

static u32 search(const u8 *pattern, u32 length, u32 *sum) {
    for (u32 i = 0; i < 256; i++) skip[i] = length;
    for (u32 i = 0; i + 1 < length; i++) skip[pattern[i]] = length - 1 - i;
    u32 count = 0;
    for (u32 at = 0; at + length <= LENGTH;) {
        u8 last = text[at + length - 1];
        u32 matched = length;
        while (matched && text[at + matched - 1] == pattern[matched - 1]) matched--;
        if (!matched) {
            count++;
            *sum = fold(*sum, at);
        }
        at += skip[last];
    }
    return count;
}

EXPORT(run) i32 run(i32 n) {
    u32 random = 5, sum = 0;
    for (u32 i = 0; i < LENGTH; i++) text[i] = (u8)('a' + (next_random(&random) >> 8) % 4);
    for (i32 round = 0; round < n; round++) {
        u32 length = 4 + (next_random(&random) >> 8) % 12;
        u32 start = (next_random(&random) >> 8) % (LENGTH - length);
        u32 count = search(text + start, length, &sum);
        sum = fold(sum, count);
    }
    return (i32)sum;
}
