/* regex: compiles a pattern to a small program and matches it by backtracking, the way Python's `re` does: literals,
 * `.`, classes, groups, `|`, `*`, `+`, `?` with their lazy forms, `^`, `$`, \d \w \s. Deep recursion, and one switch. */
#include "guest.h"

enum op { CHARACTER, ANY, CLASS, SPLIT, SPLIT_LAZY, JUMP, START, FINISH, MATCH };

typedef struct {
    enum op op;
    i32 target;
    u8 character;
    u8 set[32];
} Step;

static Step program[1024];
static i32 used;
static const u8 *pattern, *subject;
static u32 subject_length;
static i32 failed;

static void compile_alternatives(void);

static Step *emit(enum op op) {
    static Step spare;
    if (used == 1000) failed = 1;
    Step *step = failed ? &spare : &program[used++];
    *step = (Step){.op = op};
    return step;
}

/* Makes room for one step at `place`, moving what follows and the jumps into it. */
static Step *insert(i32 place, enum op op) {
    emit(op);
    if (failed) return program;
    for (i32 i = used - 1; i > place; i--) program[i] = program[i - 1];
    for (i32 i = place + 1; i < used; i++) {
        Step *step = &program[i];
        if ((step->op == SPLIT || step->op == SPLIT_LAZY || step->op == JUMP) && step->target >= place) step->target++;
    }
    program[place] = (Step){.op = op};
    return &program[place];
}

static void add(u8 *set, u32 c) { set[c >> 3] |= (u8)(1 << (c & 7)); }

static void add_range(u8 *set, u32 first, u32 last) {
    for (u32 c = first; c <= last; c++) add(set, c);
}

static i32 add_shorthand(u8 *set, u8 letter) {
    switch (letter) {
        case 'd':
            add_range(set, '0', '9');
            return 1;
        case 'w':
            add_range(set, '0', '9');
            add_range(set, 'a', 'z');
            add_range(set, 'A', 'Z');
            add(set, '_');
            return 1;
        case 's':
            add(set, ' ');
            add_range(set, '\t', '\r');
            return 1;
        default:
            return 0;
    }
}

static void compile_class(void) {
    Step *step = emit(CLASS);
    i32 inverted = *pattern == '^';
    pattern += inverted;
    for (i32 first = 1; *pattern && (first || *pattern != ']'); first = 0) {
        if (*pattern == '\\' && add_shorthand(step->set, pattern[1])) {
            pattern += 2;
            continue;
        }
        pattern += *pattern == '\\';
        u8 low = *pattern++;
        if (pattern[0] == '-' && pattern[1] && pattern[1] != ']') {
            add_range(step->set, low, pattern[1]);
            pattern += 2;
        } else
            add(step->set, low);
    }
    if (*pattern++ != ']') failed = 1;
    if (inverted)
        for (u32 i = 0; i < 32; i++) step->set[i] = (u8)~step->set[i];
}

static void compile_atom(void) {
    u8 c = *pattern++;
    switch (c) {
        case '(':
            pattern += pattern[0] == '?' && pattern[1] == ':' ? 2 : 0;
            compile_alternatives();
            if (*pattern++ != ')') failed = 1;
            return;
        case '[':
            compile_class();
            return;
        case '.':
            emit(ANY);
            return;
        case '^':
            emit(START);
            return;
        case '$':
            emit(FINISH);
            return;
        case '\\': {
            Step *step = emit(CLASS);
            if (!add_shorthand(step->set, *pattern)) add(step->set, *pattern);
            pattern++;
            return;
        }
        default:
            emit(CHARACTER)->character = c;
    }
}

static void compile_repeated(void) {
    i32 start = used;
    compile_atom();
    while (!failed && (*pattern == '*' || *pattern == '+' || *pattern == '?')) {
        u8 sign = *pattern++;
        enum op split = *pattern == '?' ? SPLIT_LAZY : SPLIT;
        pattern += *pattern == '?';
        if (sign == '+') {
            /* The way back is the target, so a greedy loop is the split that prefers its target. */
            emit(split == SPLIT ? SPLIT_LAZY : SPLIT)->target = start;
        } else {
            insert(start, split);
            if (sign == '*') emit(JUMP)->target = start;
            program[start].target = used;
        }
    }
}

static void compile_sequence(void) {
    while (!failed && *pattern && *pattern != '|' && *pattern != ')') compile_repeated();
}

static void compile_alternatives(void) {
    i32 start = used;
    compile_sequence();
    if (failed || *pattern != '|') return;
    pattern++;
    insert(start, SPLIT);
    i32 leave = used;
    emit(JUMP);
    program[start].target = used;
    compile_alternatives();
    program[leave].target = used;
}

/* Where a match that starts at `position` ends, or -1. SPLIT prefers the next step, SPLIT_LAZY its target. */
static i32 match_here(i32 step, u32 position) {
    for (;;) {
        const Step *now = &program[step];
        switch (now->op) {
            case CHARACTER:
                if (position >= subject_length || subject[position] != now->character) return -1;
                position++;
                step++;
                break;
            case ANY:
                if (position >= subject_length || subject[position] == '\n') return -1;
                position++;
                step++;
                break;
            case CLASS:
                if (position >= subject_length) return -1;
                if (!(now->set[subject[position] >> 3] >> (subject[position] & 7) & 1)) return -1;
                position++;
                step++;
                break;
            case SPLIT: {
                i32 found = match_here(step + 1, position);
                if (found >= 0) return found;
                step = now->target;
                break;
            }
            case SPLIT_LAZY: {
                i32 found = match_here(now->target, position);
                if (found >= 0) return found;
                step++;
                break;
            }
            case JUMP:
                step = now->target;
                break;
            case START:
                if (position) return -1;
                step++;
                break;
            case FINISH:
                if (position != subject_length) return -1;
                step++;
                break;
            case MATCH:
                return (i32)position;
        }
    }
}

/* The input is a pattern, a zero byte, and a subject of `length` bytes. Returns start << 16 | end of the first match, -1
 * if there is none, -2 if the pattern is malformed. */
EXPORT(search) i32 search(u32 pattern_length, u32 length) {
    pattern = input;
    subject = input + pattern_length + 1;
    subject_length = length;
    used = failed = 0;
    compile_alternatives();
    emit(MATCH);
    if (failed || pattern != input + pattern_length) return -2;
    for (u32 start = 0; start <= length; start++) {
        i32 end = match_here(0, start);
        if (end >= 0) return (i32)(start << 16) | end;
    }
    return -1;
}
