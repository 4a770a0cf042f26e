/* crc32: the CRC of zlib and PNG through a table of 256 words. One byte load, one word load and a few bit operations
 * per byte. Each round continues from the sum of the round before. */
#include "guest.h"

#define LENGTH 65536

static u32 table[256];
static u8 data[LENGTH];

static void prepare(void) {
    for (u32 byte = 0; byte < 256; byte++) {
        u32 remainder = byte;
        for (i32 bit = 0; bit < 8; bit++) remainder = remainder >> 1 ^ (0xEDB88320u & (0u - (remainder & 1)));
        table[byte] = remainder;
    }
    u32 random = 1;
    for (u32 i = 0; i < LENGTH; i++) data[i] = (u8)(next_random(&random) >> 8);
}

EXPORT(run) i32 run(i32 n) {
    prepare();
    u32 crc = 0;
    for (i32 round = 0; round < n; round++) {
        crc = ~crc;
        for (u32 i = 0; i < LENGTH; i++) crc = table[(crc ^ data[i]) & 255] ^ crc >> 8;
        crc = ~crc;
    }
    return (i32)crc;
}
