/* sha256: the digest of a message of 4 KiB, n times; each digest replaces the message's first 32 bytes. Straight-line
 * 32-bit arithmetic and rotations: the line that shows what a block of pure integer code costs. */
#include "guest.h"

#define LENGTH 4096

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes, and of the square roots of the
 * first eight. */
static const u32 round_constants[64] = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
    0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
    0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
    0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
    0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
    0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
    0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
};
static const u32 initial_state[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};

static u8 message[LENGTH + 64];

static inline u32 rotate(u32 x, u32 by) { return x >> by | x << (32 - by); }

static u32 load_word(const u8 *bytes) {
    return (u32)bytes[0] << 24 | (u32)bytes[1] << 16 | (u32)bytes[2] << 8 | bytes[3];
}

static void store_word(u8 *bytes, u32 word) {
    bytes[0] = (u8)(word >> 24);
    bytes[1] = (u8)(word >> 16);
    bytes[2] = (u8)(word >> 8);
    bytes[3] = (u8)word;
}

static void absorb(u32 state[8], const u8 *block) {
    u32 schedule[64];
    for (u32 i = 0; i < 16; i++) schedule[i] = load_word(block + 4 * i);
    for (u32 i = 16; i < 64; i++) {
        u32 early = schedule[i - 15], late = schedule[i - 2];
        u32 small0 = rotate(early, 7) ^ rotate(early, 18) ^ early >> 3;
        u32 small1 = rotate(late, 17) ^ rotate(late, 19) ^ late >> 10;
        schedule[i] = schedule[i - 16] + small0 + schedule[i - 7] + small1;
    }
    u32 a = state[0], b = state[1], c = state[2], d = state[3];
    u32 e = state[4], f = state[5], g = state[6], h = state[7];
    for (u32 i = 0; i < 64; i++) {
        u32 choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
        u32 first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + round_constants[i] + schedule[i];
        u32 second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

EXPORT(run) i32 run(i32 n) {
    u32 random = 3;
    for (u32 i = 0; i < LENGTH; i++) message[i] = (u8)(next_random(&random) >> 8);
    for (u32 i = LENGTH; i < LENGTH + 64; i++) message[i] = 0;
    message[LENGTH] = 0x80;
    store_word(message + LENGTH + 60, LENGTH * 8);
    for (i32 round = 0; round < n; round++) {
        u32 state[8];
        for (u32 i = 0; i < 8; i++) state[i] = initial_state[i];
        for (u32 at = 0; at < LENGTH + 64; at += 64) absorb(state, message + at);
        for (u32 i = 0; i < 8; i++) store_word(message + 4 * i, state[i]);
    }
    return (i32)load_word(message);
}
