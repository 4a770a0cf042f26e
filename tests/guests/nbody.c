/* nbody: bodies that attract each other, moved in small steps by the leapfrog method. Doubles all the way, in a fixed
 * order, so that a Python program with the same order arrives at the same bits. */
#include "guest.h"

#define BODIES 5

typedef struct {
    double position[3], velocity[3], mass;
} Body;

static Body bodies[BODIES];

static double cell(i32 i, i32 j) { return (double)((i * 7 + j * 3) % 11) - 5.0; }

EXPORT(prepare) void prepare(void) {
    for (i32 i = 0; i < BODIES; i++) {
        for (i32 axis = 0; axis < 3; axis++) {
            bodies[i].position[axis] = cell(i, axis) * 1.5;
            bodies[i].velocity[axis] = cell(axis, i) * 0.125;
        }
        bodies[i].mass = 1.0 / (double)(i + 1);
    }
}

EXPORT(energy) double energy(void) {
    double total = 0.0;
    for (i32 i = 0; i < BODIES; i++) {
        const double *v = bodies[i].velocity;
        total += 0.5 * bodies[i].mass * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        for (i32 j = i + 1; j < BODIES; j++) {
            double squared = 0.0;
            for (i32 axis = 0; axis < 3; axis++) {
                double gap = bodies[i].position[axis] - bodies[j].position[axis];
                squared += gap * gap;
            }
            total -= bodies[i].mass * bodies[j].mass / __builtin_sqrt(squared);
        }
    }
    return total;
}

EXPORT(advance) double advance(i32 steps, double step) {
    for (i32 turn = 0; turn < steps; turn++) {
        for (i32 i = 0; i < BODIES; i++)
            for (i32 j = i + 1; j < BODIES; j++) {
                double gap[3], squared = 0.0;
                for (i32 axis = 0; axis < 3; axis++) {
                    gap[axis] = bodies[i].position[axis] - bodies[j].position[axis];
                    squared += gap[axis] * gap[axis];
                }
                double pull = step / (squared * __builtin_sqrt(squared));
                for (i32 axis = 0; axis < 3; axis++) {
                    bodies[i].velocity[axis] -= gap[axis] * bodies[j].mass * pull;
                    bodies[j].velocity[axis] += gap[axis] * bodies[i].mass * pull;
                }
            }
        for (i32 i = 0; i < BODIES; i++)
            for (i32 axis = 0; axis < 3; axis++) bodies[i].position[axis] += step * bodies[i].velocity[axis];
    }
    return energy();
}
