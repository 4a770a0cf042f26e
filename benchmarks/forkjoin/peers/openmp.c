/* The workloads in C with OpenMP: tasks where there is recursion, cut off by hand where that pays; loops otherwise.
   Every function computes what the kernels of the file of its name compute. */

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void set_threads(int64_t count) { omp_set_num_threads((int)count); }

/* ------------------------------------------------------------------ fib */

enum { FIB_CUT = 20 };

static int64_t fib_serial(int64_t n) { return n < 2 ? n : fib_serial(n - 1) + fib_serial(n - 2); }

static int64_t fib_task(int64_t n) {
    if (n < FIB_CUT) return fib_serial(n);
    int64_t x, y;
#pragma omp task shared(x)
    x = fib_task(n - 1);
    y = fib_task(n - 2);
#pragma omp taskwait
    return x + y;
}

EXPORT int64_t fib(int64_t n) {
    int64_t result;
#pragma omp parallel
#pragma omp single
    result = fib_task(n);
    return result;
}

/* ------------------------------------------------------------------ treesum */

enum { TREE_CUT = 12 };

static int64_t tree_task(const int64_t *values, const int32_t *left, const int32_t *right, int64_t node, int depth) {
    if (node < 0) return 0;
    int64_t x, y;
    if (depth > TREE_CUT) {
        x = tree_task(values, left, right, left[node], depth);
        y = tree_task(values, left, right, right[node], depth);
        return values[node] + x + y;
    }
#pragma omp task shared(x)
    x = tree_task(values, left, right, left[node], depth + 1);
    y = tree_task(values, left, right, right[node], depth + 1);
#pragma omp taskwait
    return values[node] + x + y;
}

EXPORT int64_t treesum(const int64_t *values, const int32_t *left, const int32_t *right, int64_t root) {
    int64_t result;
#pragma omp parallel
#pragma omp single
    result = tree_task(values, left, right, root, 0);
    return result;
}

/* ------------------------------------------------------------------ nqueens */

enum { QUEENS_CUT = 3 };

static int64_t queens_task(int64_t board, int64_t columns, int64_t rising, int64_t falling, int depth) {
    if (columns == board) return 1;
    int64_t free = board & ~(columns | rising | falling), ways = 0, found[64];
    int count = 0;
    while (free) {
        int64_t queen = free & -free;
        free ^= queen;
        if (depth >= QUEENS_CUT) {
            ways += queens_task(board, columns | queen, (rising | queen) << 1, (falling | queen) >> 1, depth);
        } else {
            int64_t *place = &found[count++];
#pragma omp task firstprivate(queen, place)
            *place = queens_task(board, columns | queen, (rising | queen) << 1, (falling | queen) >> 1, depth + 1);
        }
    }
    if (depth >= QUEENS_CUT) return ways;
#pragma omp taskwait
    for (int i = 0; i < count; i++) ways += found[i];
    return ways;
}

EXPORT int64_t nqueens(int64_t board, int64_t columns, int64_t rising, int64_t falling) {
    int64_t result;
#pragma omp parallel
#pragma omp single
    result = queens_task(board, columns, rising, falling, 0);
    return result;
}

/* ------------------------------------------------------------------ mergesort */

enum { SORT_RUN = 24, SORT_CUT = 4096 };

static int64_t bound(const double *a, int64_t first, int64_t end, double x, int after) {
    while (first < end) {
        int64_t middle = (first + end) / 2;
        if (a[middle] < x || (after && !(x < a[middle]))) first = middle + 1;
        else end = middle;
    }
    return first;
}

static void merge(const double *source, int64_t first, int64_t middle, int64_t second, int64_t end, double *target) {
    if (middle - first + end - second > SORT_CUT) {
        int64_t cut, other;
        if (middle - first >= end - second) {
            cut = (first + middle) / 2;
            other = bound(source, second, end, source[cut], 0);
        } else {
            other = (second + end) / 2;
            cut = bound(source, first, middle, source[other], 1);
        }
#pragma omp task
        merge(source, first, cut, second, other, target);
        merge(source, cut, middle, other, end, target + (cut - first) + (other - second));
#pragma omp taskwait
        return;
    }
    while (first < middle && second < end) *target++ = source[second] < source[first] ? source[second++] : source[first++];
    memcpy(target, source + first, (middle - first) * sizeof(double));
    memcpy(target + (middle - first), source + second, (end - second) * sizeof(double));
}

static void sort(double *a, double *scratch, int64_t first, int64_t end, int elsewhere) {
    if (end - first <= SORT_RUN) {
        for (int64_t i = first + 1; i < end; i++) {
            double x = a[i];
            int64_t k = i;
            for (; k > first && x < a[k - 1]; k--) a[k] = a[k - 1];
            a[k] = x;
        }
        if (elsewhere) memcpy(scratch + first, a + first, (end - first) * sizeof(double));
        return;
    }
    int64_t middle = (first + end) / 2;
#pragma omp task if (end - first > SORT_CUT)
    sort(a, scratch, first, middle, !elsewhere);
    sort(a, scratch, middle, end, !elsewhere);
#pragma omp taskwait
    if (elsewhere) merge(a, first, middle, middle, end, scratch + first);
    else merge(scratch, first, middle, middle, end, a + first);
}

EXPORT void mergesort(const double *numbers, double *a, double *scratch, int64_t count) {
#pragma omp parallel for
    for (int64_t i = 0; i < count; i++) a[i] = numbers[i];
#pragma omp parallel
#pragma omp single
    sort(a, scratch, 0, count, 0);
}

/* ------------------------------------------------------------------ primes */

enum { SIEVE_BLOCK = 1 << 16 };

EXPORT int64_t primes(uint8_t *flags, int64_t size, const int64_t *small, int64_t count) {
    int64_t found = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : found)
    for (int64_t block = 0; block < (size + SIEVE_BLOCK - 1) / SIEVE_BLOCK; block++) {
        int64_t first = block * SIEVE_BLOCK, end = first + SIEVE_BLOCK < size ? first + SIEVE_BLOCK : size;
        memset(flags + first, 1, end - first);
        for (int64_t k = 0; k < count && small[k] * small[k] < end; k++) {
            int64_t p = small[k], start = (first + p - 1) / p * p;
            for (int64_t i = start > p * p ? start : p * p; i < end; i += p) flags[i] = 0;
        }
        for (int64_t i = first > 2 ? first : 2; i < end; i++) found += flags[i];
    }
    return found;
}

/* ------------------------------------------------------------------ mcss */

typedef struct { double best, first, last, total; } Sums;

static inline double larger(double a, double b) { return a > b ? a : b; }

static inline Sums joined(Sums x, Sums y) {
    Sums all = {larger(larger(x.best, y.best), x.last + y.first), larger(x.first, x.total + y.first),
                larger(y.last, x.last + y.total), x.total + y.total};
    return all;
}

#define NONE {-1e300, -1e300, -1e300, 0}

/* OpenMP's own reductions join in any order: so each thread's sums are kept. */
EXPORT double mcss(const double *a, int64_t count) {
    Sums found[256];
    int threads = 1;
#pragma omp parallel
    {
#pragma omp single
        threads = omp_get_num_threads();
        int64_t part = omp_get_thread_num();
        Sums sums = NONE;
        for (int64_t i = part * count / threads; i < (part + 1) * count / threads; i++) {
            sums.last = larger(sums.last, 0) + a[i];
            sums.best = larger(sums.best, sums.last);
            sums.total += a[i];
            sums.first = larger(sums.first, sums.total);
        }
        found[part] = sums;
    }
    Sums all = found[0];
    for (int part = 1; part < threads; part++) all = joined(all, found[part]);
    return all.best;
}

/* ------------------------------------------------------------------ spmv */

EXPORT void spmv(const int64_t *starts, const int32_t *columns, const double *values, const double *vector, double *out,
                 int64_t rows) {
#pragma omp parallel for schedule(dynamic, 256)
    for (int64_t i = 0; i < rows; i++) {
        double total = 0;
        for (int64_t k = starts[i]; k < starts[i + 1]; k++) total += values[k] * vector[columns[k]];
        out[i] = total;
    }
}

/* ------------------------------------------------------------------ mandelbrot */

enum { MOST_STEPS = 300 };

EXPORT void mandelbrot(int32_t *out, int64_t height, int64_t width) {
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++) {
            double x = (double)(j * 3) / width - 2, y = (double)(i * 2) / height - 1, a = 0, b = 0;
            int step = 0;
            for (; step < MOST_STEPS; step++) {
                double next = a * a - b * b + x;
                b = 2 * a * b + y;
                a = next;
                if (a * a + b * b > 4) break;
            }
            out[i * width + j] = step;
        }
}

/* ------------------------------------------------------------------ raytracer */

enum { BOUNCES = 4 };
static const double LIGHT[3] = {0.577350269, 0.577350269, -0.577350269};

static int64_t hit(const double *spheres, int64_t count, const double *from, const double *way, double *distance) {
    int64_t found = -1;
    *distance = 1e30;
    for (int64_t k = 0; k < count; k++) {
        const double *s = spheres + 4 * k;
        double c[3] = {s[0] - from[0], s[1] - from[1], s[2] - from[2]};
        double along = c[0] * way[0] + c[1] * way[1] + c[2] * way[2];
        double rest = along * along - (c[0] * c[0] + c[1] * c[1] + c[2] * c[2]) + s[3] * s[3];
        if (rest > 0) {
            double far = along - sqrt(rest);
            if (1e-4 < far && far < *distance) *distance = far, found = k;
        }
    }
    return found;
}

static double brightness(const double *spheres, int64_t count, double px, double py) {
    double length = sqrt(px * px + py * py + 1), from[3] = {0, 0, -3}, way[3] = {px / length, py / length, 1 / length};
    double seen = 0, weight = 1, far;
    for (int bounce = 0; bounce < BOUNCES; bounce++) {
        int64_t k = hit(spheres, count, from, way, &far);
        if (k < 0) return seen + weight * (0.5 + 0.5 * way[1]);
        double normal[3], shade = 0, along = 0;
        for (int d = 0; d < 3; d++) {
            from[d] += way[d] * far;
            normal[d] = (from[d] - spheres[4 * k + d]) / spheres[4 * k + 3];
            shade += normal[d] * LIGHT[d];
            along += way[d] * normal[d];
        }
        if (shade > 0 && hit(spheres, count, from, LIGHT, &far) < 0) seen += weight * 0.6 * shade;
        weight *= 0.4;
        for (int d = 0; d < 3; d++) way[d] -= 2 * along * normal[d];
    }
    return seen;
}

EXPORT void raytracer(const double *spheres, int64_t count, double *out, int64_t height, int64_t width) {
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++)
            out[i * width + j] = brightness(spheres, count, 2.0 * j / width - 1, 1 - 2.0 * i / height);
}

/* ------------------------------------------------------------------ bfs */

EXPORT int64_t bfs(const int64_t *starts, const int32_t *ends, int32_t *level, int64_t count) {
#pragma omp parallel for
    for (int64_t v = 0; v < count; v++) level[v] = -1;
    level[0] = 0;
    int64_t reached = 0;
    for (int32_t depth = 0;; depth++) {
        int64_t found = 0;
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : found)
        for (int64_t v = 0; v < count; v++) {
            if (level[v] != depth) continue;
            found++;
            for (int64_t k = starts[v]; k < starts[v + 1]; k++)
                if (level[ends[k]] < 0) level[ends[k]] = depth + 1;
        }
        if (!found) return reached;
        reached += found;
    }
}

/* ------------------------------------------------------------------ histogram */

EXPORT void histogram(const uint8_t *data, int64_t count, int64_t *out) {
    memset(out, 0, 256 * sizeof(int64_t));
#pragma omp parallel
    {
        int64_t own[256] = {0};
#pragma omp for nowait
        for (int64_t i = 0; i < count; i++) own[data[i]]++;
#pragma omp critical
        for (int k = 0; k < 256; k++) out[k] += own[k];
    }
}
