/* matmul: the textbook product of two 48 × 48 matrices of doubles, n times; each product, scaled down, becomes the
 * next left operand. The additions happen in a fixed order, so the checksum is the same bits everywhere. */
#include "guest.h"

#define SIZE 48

static double left[SIZE][SIZE], right[SIZE][SIZE], product[SIZE][SIZE];

static u32 fold_double(u32 sum, double value) {
    union { double value; u64 bits; } view = {value};
    return fold(fold(sum, (u32)view.bits), (u32)(view.bits >> 32));
}

EXPORT(run) i32 run(i32 n) {
    u32 random = 7;
    for (u32 i = 0; i < SIZE; i++)
        for (u32 j = 0; j < SIZE; j++) {
            left[i][j] = (double)(i32)(next_random(&random) & 1023) / 512.0 - 1.0;
            right[i][j] = (double)(i32)(next_random(&random) & 1023) / 512.0 - 1.0;
        }
    for (i32 round = 0; round < n; round++) {
        for (u32 i = 0; i < SIZE; i++)
            for (u32 j = 0; j < SIZE; j++) {
                double total = 0.0;
                for (u32 k = 0; k < SIZE; k++) total += left[i][k] * right[k][j];
                product[i][j] = total;
            }
        for (u32 i = 0; i < SIZE; i++)
            for (u32 j = 0; j < SIZE; j++) left[i][j] = product[i][j] * 0.125;
    }
    u32 sum = 0;
    for (u32 i = 0; i < SIZE; i++)
        for (u32 j = 0; j < SIZE; j++) sum = fold_double(sum, left[i][j]);
    return (i32)sum;
}
