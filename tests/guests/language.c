/* language: an interpreter of a small stack language in the manner of Forth. Source text is compiled to codes; a switch
 * runs the codes, and every word built in is reached through a table of function pointers. So this guest is itself an
 * interpreter with both usual kinds of dispatch: br_table and call_indirect. */
#include "guest.h"

#define STACK 256
#define CODES 4096
#define WORDS 128

enum code { PUSH, BUILTIN, CALL, RETURN, JUMP, JUMP_IF_ZERO, HALT };

typedef struct {
    const u8 *name;
    u32 length;
    i32 start;
} Word;

static i32 codes[CODES];
static Word words[WORDS];
static i32 used, word_count;
static i32 stack[STACK], calls[STACK];
static u32 height, depth, written;
static i32 error;

enum { UNDERFLOW = 1, OVERFLOW, UNKNOWN_WORD, DIVISION_BY_ZERO, MALFORMED, OUT_OF_FUEL };

static i32 pop(void) {
    if (!height) {
        error = UNDERFLOW;
        return 0;
    }
    return stack[--height];
}

static void push(i32 value) {
    if (height == STACK)
        error = OVERFLOW;
    else
        stack[height++] = value;
}

static void put(u8 c) {
    if (written < BUFFER_BYTES) output[written++] = c;
}

#define BINARY(name, expression)               \
    static void name(void) {                   \
        u32 b = (u32)pop(), a = (u32)pop();    \
        push((i32)(expression));               \
    }

BINARY(add, a + b)
BINARY(subtract, a - b)
BINARY(multiply, a *b)
BINARY(less, (i32)a < (i32)b)
BINARY(equal, a == b)
BINARY(both, a &b)
BINARY(either, a | b)

static i32 divisor(void) {
    i32 b = pop();
    if (!b) error = DIVISION_BY_ZERO;
    return b ? b : 1;
}

static void divide(void) {
    i32 b = divisor(), a = pop();
    push(b == -1 ? (i32)(0u - (u32)a) : a / b);
}

static void modulo(void) {
    i32 b = divisor(), a = pop();
    push(b == -1 ? 0 : a % b);
}

static void duplicate(void) {
    i32 a = pop();
    push(a);
    push(a);
}

static void drop(void) { pop(); }

static void swap(void) {
    i32 b = pop(), a = pop();
    push(b);
    push(a);
}

static void over(void) {
    i32 b = pop(), a = pop();
    push(a);
    push(b);
    push(a);
}

static void rotate(void) {
    i32 c = pop(), b = pop(), a = pop();
    push(b);
    push(c);
    push(a);
}

static void emit(void) { put((u8)pop()); }

static void print(void) {
    i32 value = pop();
    u32 rest = value < 0 ? 0u - (u32)value : (u32)value;
    u8 digits[10];
    u32 count = 0;
    do digits[count++] = (u8)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) put('-');
    while (count) put(digits[--count]);
    put(' ');
}

static const struct {
    const char *name;
    void (*function)(void);
} builtins[] = {{"+", add},         {"-", subtract}, {"*", multiply}, {"<", less},     {"=", equal},  {"and", both},
                {"or", either},     {"/", divide},   {"mod", modulo}, {"dup", duplicate}, {"drop", drop}, {"swap", swap},
                {"over", over},     {"rot", rotate}, {"emit", emit},  {".", print}};

static i32 is_name(const u8 *word, u32 length, const char *name) {
    for (u32 i = 0; i < length; i++)
        if (word[i] != (u8)name[i]) return 0;
    return !name[length];
}

static void add_code(i32 code) {
    if (used == CODES)
        error = OVERFLOW;
    else
        codes[used++] = code;
}

static i32 as_number(const u8 *word, u32 length, i32 *number) {
    u32 value = 0, sign = length > 1 && *word == '-';
    for (u32 i = sign; i < length; i++) {
        if (word[i] < '0' || word[i] > '9') return 0;
        value = value * 10 + (word[i] - '0');
    }
    *number = (i32)(sign ? 0u - value : value);
    return 1;
}

/* One word of the text, which is neither a number nor a piece of the language's structure. */
static void compile_word(const u8 *word, u32 length) {
    for (i32 i = word_count; i--;) {
        u32 at = 0;
        while (words[i].length == length && at < length && words[i].name[at] == word[at]) at++;
        if (at == length && words[i].length == length) {
            add_code(CALL);
            add_code(words[i].start);
            return;
        }
    }
    for (u32 i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (is_name(word, length, builtins[i].name)) {
            add_code(BUILTIN);
            add_code((i32)i);
            return;
        }
    error = UNKNOWN_WORD;
}

/* Returns where the main program starts. Definitions are compiled where they stand; a jump leads around each. */
static i32 compile(const u8 *text, const u8 *end) {
    i32 open[32], open_count = 0;
    while (!error) {
        while (text < end && *text <= ' ') text++;
        if (text == end) break;
        const u8 *word = text;
        while (text < end && *text > ' ') text++;
        u32 length = (u32)(text - word);
        i32 number;
        if (open_count > 30) {
            error = MALFORMED;
        } else if (as_number(word, length, &number)) {
            add_code(PUSH);
            add_code(number);
        } else if (is_name(word, length, ":")) {
            while (text < end && *text <= ' ') text++;
            const u8 *name = text;
            while (text < end && *text > ' ') text++;
            add_code(JUMP);
            open[open_count++] = used;
            add_code(0);
            if (word_count == WORDS) error = OVERFLOW;
            if (!error) words[word_count++] = (Word){name, (u32)(text - name), used};
        } else if (is_name(word, length, ";")) {
            add_code(RETURN);
            if (open_count) codes[open[--open_count]] = used;
            else error = MALFORMED;
        } else if (is_name(word, length, "if")) {
            add_code(JUMP_IF_ZERO);
            open[open_count++] = used;
            add_code(0);
        } else if (is_name(word, length, "else")) {
            add_code(JUMP);
            add_code(0);
            if (open_count) {
                codes[open[open_count - 1]] = used;
                open[open_count - 1] = used - 1;
            } else
                error = MALFORMED;
        } else if (is_name(word, length, "then")) {
            if (open_count) codes[open[--open_count]] = used;
            else error = MALFORMED;
        } else if (is_name(word, length, "begin")) {
            open[open_count++] = used;
        } else if (is_name(word, length, "until")) {
            add_code(JUMP_IF_ZERO);
            if (open_count) add_code(open[--open_count]);
            else error = MALFORMED;
        } else
            compile_word(word, length);
    }
    if (open_count) error = MALFORMED;
    add_code(HALT);
    return 0;
}

static void execute(i32 at, i32 fuel) {
    while (!error) {
        if (!fuel--) {
            error = OUT_OF_FUEL;
            return;
        }
        switch ((enum code)codes[at++]) {
            case PUSH:
                push(codes[at++]);
                break;
            case BUILTIN:
                builtins[codes[at++]].function();
                break;
            case CALL:
                if (depth == STACK) {
                    error = OVERFLOW;
                    break;
                }
                calls[depth++] = at + 1;
                at = codes[at];
                break;
            case RETURN:
                if (depth) at = calls[--depth];
                else error = UNDERFLOW;
                break;
            case JUMP:
                at = codes[at];
                break;
            case JUMP_IF_ZERO:
                at = pop() ? at + 1 : codes[at];
                break;
            case HALT:
                return;
        }
    }
}

/* Runs the text in the input. Returns the number of bytes written to the output, or minus the error. */
EXPORT(run) i32 run(u32 length, i32 fuel) {
    used = word_count = error = 0;
    height = depth = written = 0;
    i32 start = compile(input, input + length);
    execute(start, fuel);
    return error ? -error : (i32)written;
}
