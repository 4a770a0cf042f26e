/* coremark_like: a mix in the manner of EEMBC's CoreMark, which it is not: the same three ingredients (a linked list that
 * is searched, reversed and sorted; integer matrices; a state machine that reads numbers) with a CRC-16 over every
 * result, but a program of its own. Its figures say nothing about anybody's CoreMark score. */
#include "guest.h"

#define NODES 96
#define SIDE 12
#define TEXT 512

typedef struct Node {
    struct Node *next;
    uint16_t key;
    uint16_t place;
} Node;

static Node nodes[NODES];
static int16_t first_matrix[SIDE][SIDE], second_matrix[SIDE][SIDE];
static i32 result_matrix[SIDE][SIDE];
static u8 text[TEXT];

/* One 16-bit word into the CRC with the polynomial 0xA001, a bit at a time: no table. */
static u32 crc16(u32 crc, u32 word) {
    for (i32 bit = 0; bit < 16; bit++) {
        u32 differs = (crc ^ word) & 1;
        word >>= 1;
        crc >>= 1;
        if (differs) crc ^= 0xA001;
    }
    return crc;
}

static u32 crc_of_word(u32 crc, u32 word) { return crc16(crc16(crc, word & 0xFFFF), word >> 16); }

/* The list. */

typedef i32 (*comparison)(const Node *, const Node *);

static __attribute__((noinline)) i32 by_key(const Node *a, const Node *b) {
    return a->key != b->key ? (i32)a->key - (i32)b->key : (i32)a->place - (i32)b->place;
}

static __attribute__((noinline)) i32 by_place(const Node *a, const Node *b) { return (i32)a->place - (i32)b->place; }

/* A bottom-up merge sort: runs of one node, of two, of four, until one run is left. */
static Node *sort(Node *list, comparison compare) {
    for (u32 run_length = 1;; run_length *= 2) {
        Node *rest = list, *tail = 0;
        u32 merges = 0;
        list = 0;
        while (rest) {
            Node *left = rest, *right = rest;
            u32 left_count = 0, right_count = run_length;
            while (left_count < run_length && right) {
                right = right->next;
                left_count++;
            }
            merges++;
            while (left_count || (right_count && right)) {
                Node *chosen;
                if (left_count && (!right_count || !right || compare(left, right) <= 0)) {
                    chosen = left;
                    left = left->next;
                    left_count--;
                } else {
                    chosen = right;
                    right = right->next;
                    right_count--;
                }
                if (tail)
                    tail->next = chosen;
                else
                    list = chosen;
                tail = chosen;
            }
            rest = right;
        }
        tail->next = 0;
        if (merges <= 1) return list;
    }
}

static Node *reverse(Node *list) {
    Node *done = 0;
    while (list) {
        Node *next = list->next;
        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

static u32 steps_to_key(const Node *list, u32 key) {
    u32 steps = 0;
    while (list && list->key != key) {
        list = list->next;
        steps++;
    }
    return steps;
}

static u32 list_pass(u32 crc, u32 *random) {
    for (u32 i = 0; i < NODES; i++) {
        nodes[i].key = (uint16_t)(next_random(random) >> 8 & 255);
        nodes[i].place = (uint16_t)i;
        nodes[i].next = i + 1 < NODES ? &nodes[i + 1] : 0;
    }
    Node *list = nodes;
    for (u32 i = 0; i < 16; i++) {
        crc = crc16(crc, steps_to_key(list, i * 16 + 5));
        list = reverse(list);
    }
    list = sort(list, by_key);
    for (Node *node = list; node; node = node->next) crc = crc16(crc, (u32)node->key ^ (u32)node->place << 8);
    list = sort(list, by_place);
    return crc16(crc, list->key);
}

/* The matrices. */

static u32 sum_of_results(void) {
    u32 sum = 0;
    i32 previous = 0;
    for (u32 i = 0; i < SIDE; i++)
        for (u32 j = 0; j < SIDE; j++) {
            i32 value = result_matrix[i][j];
            sum += value > previous ? 10u : (u32)value & 7;
            previous = value;
        }
    return sum;
}

static u32 matrix_pass(u32 crc, u32 *random) {
    for (u32 i = 0; i < SIDE; i++)
        for (u32 j = 0; j < SIDE; j++) {
            first_matrix[i][j] = (int16_t)(next_random(random) >> 16);
            second_matrix[i][j] = (int16_t)(next_random(random) >> 24);
        }
    i32 factor = (i32)(*random & 63);
    for (u32 i = 0; i < SIDE; i++)
        for (u32 j = 0; j < SIDE; j++) result_matrix[i][j] = first_matrix[i][j] * factor;
    crc = crc_of_word(crc, sum_of_results());
    for (u32 i = 0; i < SIDE; i++) {
        u32 total = 0;
        for (u32 j = 0; j < SIDE; j++) total += (u32)(first_matrix[i][j] * second_matrix[0][j]);
        crc = crc_of_word(crc, total);
    }
    for (u32 i = 0; i < SIDE; i++)
        for (u32 j = 0; j < SIDE; j++) {
            u32 total = 0;
            for (u32 k = 0; k < SIDE; k++) total += (u32)(first_matrix[i][k] * second_matrix[k][j]);
            result_matrix[i][j] = (i32)total;
        }
    crc = crc_of_word(crc, sum_of_results());
    for (u32 i = 0; i < SIDE; i++)
        for (u32 j = 0; j < SIDE; j++) {
            u32 total = 0;
            for (u32 k = 0; k < SIDE; k++) {
                u32 term = (u32)(first_matrix[i][k] * second_matrix[k][j]);
                total += (term >> 2 & 15) * (term >> 5 & 127);
            }
            result_matrix[i][j] = (i32)total;
        }
    return crc_of_word(crc, sum_of_results());
}

/* The state machine. */

enum state { START, SIGN, DIGITS, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, POWER, WRONG, STATES };

static enum state next_state(enum state state, u8 byte) {
    u32 digit = byte >= '0' && byte <= '9';
    switch (state) {
        case START:
            return digit ? DIGITS : byte == '+' || byte == '-' ? SIGN : byte == '.' ? POINT : WRONG;
        case SIGN:
            return digit ? DIGITS : byte == '.' ? POINT : WRONG;
        case DIGITS:
            return digit ? DIGITS : byte == '.' ? FRACTION : byte == 'e' ? EXPONENT : WRONG;
        case POINT:
            return digit ? FRACTION : WRONG;
        case FRACTION:
            return digit ? FRACTION : byte == 'e' ? EXPONENT : WRONG;
        case EXPONENT:
            return digit ? POWER : byte == '+' || byte == '-' ? EXPONENT_SIGN : WRONG;
        case EXPONENT_SIGN:
        case POWER:
            return digit ? POWER : WRONG;
        default:
            return WRONG;
    }
}

static u32 machine_pass(u32 crc, u32 *random) {
    static const u8 alphabet[] = "0123456789012345678,,,,,..+-eeT ";
    u32 ended[STATES] = {0}, visited[STATES] = {0};
    for (u32 i = 0; i < TEXT; i++) text[i] = alphabet[next_random(random) >> 8 & 31];
    enum state state = START;
    for (u32 i = 0; i < TEXT; i++) {
        if (text[i] == ',') {
            ended[state]++;
            state = START;
        } else
            state = next_state(state, text[i]);
        visited[state]++;
    }
    for (u32 i = 0; i < STATES; i++) crc = crc16(crc16(crc, ended[i]), visited[i]);
    return crc;
}

EXPORT(run) i32 run(i32 n) {
    u32 random = 19, crc = 0xFFFF;
    for (i32 round = 0; round < n; round++) {
        crc = list_pass(crc, &random);
        crc = matrix_pass(crc, &random);
        crc = machine_pass(crc, &random);
    }
    return (i32)crc;
}
