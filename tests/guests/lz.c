/* lz: compresses with matches found through a hash table, and decompresses again. Unaligned loads of 16 and 32 bits,
 * sign extension, overlapping copies byte by byte. A flag byte leads eight items: a literal byte, or a distance of two
 * bytes and a length. */
#include "guest.h"

#define SHORTEST 4
#define LONGEST 258
#define SLOTS 4096

static i32 table[SLOTS];

static u32 load32(const u8 *from) {
    u32 word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

EXPORT(compress) i32 compress(u32 length) {
    for (u32 i = 0; i < SLOTS; i++) table[i] = -1;
    u32 at = 0, to = 0, flags_at = 0, items = 0;
    while (at < length) {
        if (to + 16 > BUFFER_BYTES) return -1;
        if (items % 8 == 0) output[flags_at = to++] = 0;
        u32 matched = 0, from = 0;
        if (at + SHORTEST <= length) {
            u32 slot = load32(input + at) * 0x9E3779B1u >> 20;
            i32 candidate = table[slot];
            table[slot] = (i32)at;
            if (candidate >= 0) {
                from = (u32)candidate;
                while (at + matched < length && matched < LONGEST && input[from + matched] == input[at + matched]) matched++;
            }
        }
        if (matched >= SHORTEST) {
            uint16_t distance = (uint16_t)(at - from);
            output[flags_at] |= (u8)(1 << items % 8);
            __builtin_memcpy(output + to, &distance, 2);
            output[to + 2] = (u8)(matched - SHORTEST);
            to += 3;
            at += matched;
        } else
            output[to++] = input[at++];
        items++;
    }
    return (i32)to;
}

/* From the input to the output; -1 if the input is not what `compress` writes. */
EXPORT(decompress) i32 decompress(u32 length) {
    u32 at = 0, to = 0, flags = 0;
    for (u32 items = 0; at < length; items++) {
        if (items % 8 == 0) {
            flags = input[at++];
            if (at == length) return -1;
        }
        if (flags >> items % 8 & 1) {
            if (at + 3 > length) return -1;
            uint16_t distance;
            __builtin_memcpy(&distance, input + at, 2);
            u32 count = (u32)input[at + 2] + SHORTEST;
            if (!distance || distance > to || to + count > BUFFER_BYTES) return -1;
            while (count--) {
                output[to] = output[to - distance];
                to++;
            }
            at += 3;
        } else {
            if (to == BUFFER_BYTES) return -1;
            output[to++] = input[at++];
        }
    }
    return (i32)to;
}

/* The sum of the input read as signed bytes and as signed 16-bit words from odd addresses. */
EXPORT(signed_sum) i32 signed_sum(u32 length) {
    i32 sum = 0;
    for (u32 i = 0; i < length; i++) sum += (int8_t)input[i];
    for (u32 i = 1; i + 1 < length; i += 2) {
        int16_t word;
        __builtin_memcpy(&word, input + i, 2);
        sum += word;
    }
    return sum;
}
