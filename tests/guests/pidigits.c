/* pidigits: the decimal digits of pi by Gibbons' spigot, on natural numbers of as many 32-bit limbs as it takes. 64-bit
 * products, carries, and a division of a long number by a long number. */
#include "guest.h"

#define LIMBS 1024

typedef struct {
    u32 count; /* The highest limb is not zero; zero has no limbs. */
    u32 limbs[LIMBS];
} Natural;

static void set(Natural *to, u32 value) {
    to->count = value != 0;
    to->limbs[0] = value;
}

static void copy(Natural *to, const Natural *from) {
    to->count = from->count;
    for (u32 i = 0; i < from->count; i++) to->limbs[i] = from->limbs[i];
}

static void multiply(Natural *number, u32 factor) {
    u64 carry = 0;
    for (u32 i = 0; i < number->count; i++) {
        carry += (u64)number->limbs[i] * factor;
        number->limbs[i] = (u32)carry;
        carry >>= 32;
    }
    if (carry) number->limbs[number->count++] = (u32)carry;
    while (number->count && !number->limbs[number->count - 1]) number->count--;
}

/* to += from * factor */
static void add_product(Natural *to, const Natural *from, u32 factor) {
    u64 carry = 0;
    u32 i = 0;
    for (; i < from->count || carry; i++) {
        u64 sum = carry + (i < to->count ? to->limbs[i] : 0);
        if (i < from->count) sum += (u64)from->limbs[i] * factor;
        to->limbs[i] = (u32)sum;
        if (i >= to->count) to->count = i + 1;
        carry = sum >> 32;
    }
    while (to->count && !to->limbs[to->count - 1]) to->count--;
}

static i32 compare(const Natural *a, const Natural *b) {
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (u32 i = a->count; i--;)
        if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
    return 0;
}

static void subtract(Natural *from, const Natural *what) {
    u64 borrow = 0;
    for (u32 i = 0; i < from->count; i++) {
        u64 difference = (u64)from->limbs[i] - (i < what->count ? what->limbs[i] : 0) - borrow;
        from->limbs[i] = (u32)difference;
        borrow = difference >> 63;
    }
    while (from->count && !from->limbs[from->count - 1]) from->count--;
}

/* The quotient, which the caller knows to be a digit, by repeated subtraction of halves. */
static u32 quotient(const Natural *numerator, const Natural *denominator) {
    static Natural rest, part;
    u32 digit = 0;
    copy(&rest, numerator);
    for (u32 bit = 8; bit; bit >>= 1) {
        set(&part, 0);
        add_product(&part, denominator, bit);
        if (compare(&rest, &part) >= 0) {
            subtract(&rest, &part);
            digit += bit;
        }
    }
    return digit;
}

/* The transformation so far takes x to (q * x + r) / t; kept is s = 3 * q + r, which, unlike r, is never negative. */
static Natural q, s, t, other;

/* Writes `count` digits to `output`, beginning with the 3, and returns how many terms of the series that took. A digit is
 * certain when x = 3 and x = 4, between which the rest of the series lies, have it in common. */
EXPORT(digits) i32 digits(u32 count) {
    u32 written = 0, terms = 0;
    set(&q, 1);
    set(&s, 3);
    set(&t, 1);
    while (written < count) {
        u32 digit = quotient(&s, &t);
        copy(&other, &s);
        add_product(&other, &q, 1);
        if (digit == quotient(&other, &t)) {
            output[written++] = (u8)('0' + digit);
            set(&other, 0);
            add_product(&other, &t, digit);
            subtract(&s, &other);
            multiply(&s, 10);
            multiply(&q, 10);
            continue;
        }
        terms++;
        multiply(&s, 2 * terms + 1);
        add_product(&s, &q, terms - 1);
        multiply(&t, 2 * terms + 1);
        multiply(&q, terms);
        if (t.count > LIMBS - 8) return -1;
    }
    return (i32)terms;
}
