/* convolution: a 5 × 5 filter over a 128 × 128 image of floats, n times, to and fro between two images. The border of
 * two pixels is left as it is. Single precision throughout. */
#include "guest.h"

#define SIDE 128
#define TAPS 5
#define BORDER (TAPS / 2)

static float images[2][SIDE][SIDE];
static float filter[TAPS][TAPS];

static u32 fold_float(u32 sum, float value) {
    union { float value; u32 bits; } view = {value};
    return fold(sum, view.bits);
}

EXPORT(run) i32 run(i32 n) {
    u32 random = 11;
    for (u32 y = 0; y < SIDE; y++)
        for (u32 x = 0; x < SIDE; x++) images[0][y][x] = images[1][y][x] = (float)(i32)(next_random(&random) & 255);
    for (u32 y = 0; y < TAPS; y++)
        for (u32 x = 0; x < TAPS; x++) filter[y][x] = (float)(i32)(1 + ((x * 3 + y * 5) & 7)) / 128.0f;
    for (i32 round = 0; round < n; round++) {
        float(*from)[SIDE] = images[round & 1], (*to)[SIDE] = images[~round & 1];
        for (u32 y = BORDER; y < SIDE - BORDER; y++)
            for (u32 x = BORDER; x < SIDE - BORDER; x++) {
                float total = 0.0f;
#pragma clang loop unroll(disable)
                for (u32 dy = 0; dy < TAPS; dy++)
#pragma clang loop unroll(disable)
                    for (u32 dx = 0; dx < TAPS; dx++)
                        total += filter[dy][dx] * from[y + dy - BORDER][x + dx - BORDER];
                to[y][x] = total;
            }
    }
    u32 sum = 0;
    for (u32 y = 0; y < SIDE; y++)
        for (u32 x = 0; x < SIDE; x++) sum = fold_float(sum, images[n & 1][y][x]);
    return (i32)sum;
}
