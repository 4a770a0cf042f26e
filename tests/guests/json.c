/* json: reads a JSON text into a tree and writes it back without white space, the keys of every object sorted.
 * Recursion, pointers, bytes, UTF-8 from \u escapes, and errors that leave a recursion at any depth. */
#include "guest.h"

enum kind { LITERAL, STRING, ARRAY, OBJECT };

typedef struct Value {
    enum kind kind;
    const u8 *text; /* A literal's or a number's characters as they stand; a string's decoded bytes. */
    u32 length;
    struct Value *child; /* The first element; in an object, keys and values alternate. */
    struct Value *next;
} Value;

static Value values[8192];
static u8 strings[BUFFER_BYTES];
static u32 values_used, strings_used;
static const u8 *at, *end;
static u8 *to;

static Value *parse(u32 depth);

static Value *new_value(enum kind kind) {
    if (values_used == sizeof values / sizeof *values) return 0;
    Value *value = &values[values_used++];
    *value = (Value){.kind = kind};
    return value;
}

static void skip_space(void) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
}

static i32 hexadecimal(void) {
    i32 code = 0;
    for (i32 i = 0; i < 4; i++, at++) {
        if (at >= end) return -1;
        u8 c = *at;
        i32 digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        code = code << 4 | digit;
    }
    return code;
}

static void put_utf8(u32 code) {
    if (code < 0x80)
        strings[strings_used++] = (u8)code;
    else {
        u32 trailing = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        static const u8 lead[] = {0, 0xC0, 0xE0, 0xF0};
        strings[strings_used++] = (u8)(lead[trailing] | code >> 6 * trailing);
        while (trailing--) strings[strings_used++] = (u8)(0x80 | (code >> 6 * trailing & 0x3F));
    }
}

static i32 escape(void) {
    switch (*at++) {
        case 'b': put_utf8('\b'); return 1;
        case 'f': put_utf8('\f'); return 1;
        case 'n': put_utf8('\n'); return 1;
        case 'r': put_utf8('\r'); return 1;
        case 't': put_utf8('\t'); return 1;
        case '"': put_utf8('"'); return 1;
        case '\\': put_utf8('\\'); return 1;
        case '/': put_utf8('/'); return 1;
        case 'u': {
            i32 code = hexadecimal();
            if (code < 0) return 0;
            if (code >= 0xD800 && code < 0xDC00) {
                if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return 0;
                at += 2;
                i32 low = hexadecimal();
                if (low < 0xDC00 || low > 0xDFFF) return 0;
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            }
            put_utf8((u32)code);
            return 1;
        }
        default: return 0;
    }
}

static Value *parse_string(void) {
    Value *value = new_value(STRING);
    if (!value || at >= end || *at++ != '"') return 0;
    value->text = strings + strings_used;
    while (at < end && *at != '"') {
        if (*at < 0x20) return 0;
        if (*at == '\\') {
            if (++at >= end || !escape()) return 0;
        } else
            strings[strings_used++] = *at++;
    }
    if (at >= end) return 0;
    at++;
    value->length = (u32)(strings + strings_used - value->text);
    return value;
}

static i32 is_literal(u8 c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '+' || c == '-' || c == '.';
}

static Value *parse_literal(void) {
    Value *value = new_value(LITERAL);
    if (!value) return 0;
    value->text = at;
    while (at < end && is_literal(*at)) at++;
    value->length = (u32)(at - value->text);
    return value->length ? value : 0;
}

static Value *parse_members(enum kind kind, u8 close, u32 depth) {
    Value *value = new_value(kind);
    if (!value) return 0;
    Value **link = &value->child;
    at++;
    skip_space();
    if (at < end && *at == close) {
        at++;
        return value;
    }
    for (;;) {
        if (kind == OBJECT) {
            skip_space();
            Value *key = parse_string();
            skip_space();
            if (!key || at >= end || *at++ != ':') return 0;
            *link = key;
            link = &key->next;
        }
        Value *member = parse(depth + 1);
        if (!member) return 0;
        *link = member;
        link = &member->next;
        skip_space();
        if (at >= end) return 0;
        u8 c = *at++;
        if (c == close) return value;
        if (c != ',') return 0;
    }
}

static Value *parse(u32 depth) {
    skip_space();
    if (at >= end || depth > 200) return 0;
    switch (*at) {
        case '"': return parse_string();
        case '[': return parse_members(ARRAY, ']', depth);
        case '{': return parse_members(OBJECT, '}', depth);
        default: return parse_literal();
    }
}

static i32 key_before(const Value *a, const Value *b) {
    for (u32 i = 0; i < a->length && i < b->length; i++)
        if (a->text[i] != b->text[i]) return a->text[i] < b->text[i];
    return a->length < b->length;
}

/* An insertion sort of the pairs: objects are small. */
static Value *sorted(Value *pairs) {
    Value *result = 0;
    while (pairs) {
        Value *key = pairs, *member = key->next;
        pairs = member->next;
        Value **place = &result;
        while (*place && !key_before(key, *place)) place = &(*place)->next->next;
        member->next = *place;
        *place = key;
    }
    return result;
}

static void put_string(const Value *value) {
    *to++ = '"';
    for (u32 i = 0; i < value->length; i++) {
        u8 c = value->text[i];
        if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = c;
        } else if (c < 0x20) {
            static const u8 digits[] = "0123456789abcdef";
            for (const char *prefix = "\\u00"; *prefix; prefix++) *to++ = (u8)*prefix;
            *to++ = digits[c >> 4];
            *to++ = digits[c & 15];
        } else
            *to++ = c;
    }
    *to++ = '"';
}

static void write(Value *value) {
    switch (value->kind) {
        case LITERAL:
            for (u32 i = 0; i < value->length; i++) *to++ = value->text[i];
            return;
        case STRING:
            put_string(value);
            return;
        case ARRAY:
            *to++ = '[';
            for (Value *member = value->child; member; member = member->next) {
                write(member);
                if (member->next) *to++ = ',';
            }
            *to++ = ']';
            return;
        case OBJECT:
            *to++ = '{';
            for (Value *key = sorted(value->child); key; key = key->next->next) {
                put_string(key);
                *to++ = ':';
                write(key->next);
                if (key->next->next) *to++ = ',';
            }
            *to++ = '}';
            return;
    }
}

/* The length of the text in `output`; of a malformed input, where it was given up, as -1 - offset. */
EXPORT(normalize) i32 normalize(u32 length) {
    at = input;
    end = input + length;
    to = output;
    values_used = strings_used = 0;
    Value *value = parse(0);
    skip_space();
    if (!value || at != end) return -1 - (i32)(at - input);
    write(value);
    return (i32)(to - output);
}
