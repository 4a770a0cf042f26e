/* hash64: SipHash-2-4 with a key given as two i64, FNV-1a, and the splitmix generator. 64-bit additions, rotations,
 * shifts and products, and i64 as parameter and result of exports. */
#include "guest.h"

static inline u64 rotate(u64 x, u32 by) { return x << by | x >> (64 - by); }

static void sip_round(u64 v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

EXPORT(siphash) u64 siphash(u64 key0, u64 key1, u32 length) {
    u64 v[4] = {key0 ^ 0x736F6D6570736575u, key1 ^ 0x646F72616E646F6Du, key0 ^ 0x6C7967656E657261u,
                key1 ^ 0x7465646279746573u};
    for (u32 at = 0; at <= length; at += 8) {
        u64 word = 0;
        for (u32 i = 0; i < 8; i++)
            word |= (u64)(at + i < length ? input[at + i] : i == 7 ? length & 255 : 0) << 8 * i;
        v[3] ^= word;
        sip_round(v);
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xFF;
    for (i32 i = 0; i < 4; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

EXPORT(fnv1a) u64 fnv1a(u32 length) {
    u64 hash = 0xCBF29CE484222325u;
    for (u32 i = 0; i < length; i++) hash = (hash ^ input[i]) * 0x100000001B3u;
    return hash;
}

EXPORT(splitmix) u64 splitmix(u64 seed, i32 count) {
    u64 mixed = 0;
    while (count-- > 0) {
        seed += 0x9E3779B97F4A7C15u;
        mixed = seed;
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
        mixed ^= mixed >> 31;
    }
    return mixed;
}

/* Quotient and remainder, signed and not, folded into one word: division by a variable is never turned into products. */
EXPORT(divide) i64 divide(i64 a, i64 b) { return a / b * 3 + a % b + (i64)((u64)a / (u64)b * 5 + (u64)a % (u64)b); }
