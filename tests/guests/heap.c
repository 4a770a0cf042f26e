/* heap: an allocator with a sorted free list that joins its neighbours and grows the memory when it must, and on top of
 * it a binary tree, filled and emptied in an order the test gives. Pointers everywhere, memory.grow and memory.size. */
#include "guest.h"

#define PAGE 65536
#define SMALLEST 16

typedef struct Block {
    u32 size; /* With this header. */
    struct Block *next;
} Block;

extern u8 __heap_base;

static Block *free_blocks;
static u32 top; /* Where the memory not yet given to the list begins. */
static u32 live_bytes;

static void *allocate(u32 size) {
    size = (size + sizeof(Block) + SMALLEST - 1) & ~(u32)(SMALLEST - 1);
    for (Block **link = &free_blocks; *link; link = &(*link)->next) {
        Block *block = *link;
        if (block->size < size) continue;
        if (block->size - size >= SMALLEST) {
            Block *rest = (Block *)((u8 *)block + size);
            *rest = (Block){block->size - size, block->next};
            block->size = size;
            *link = rest;
        } else
            *link = block->next;
        live_bytes += block->size;
        return block + 1;
    }
    if (!top) top = ((u32)(uintptr_t)&__heap_base + SMALLEST - 1) & ~(u32)(SMALLEST - 1);
    u32 have = (u32)__builtin_wasm_memory_size(0) * PAGE;
    if (top + size > have && __builtin_wasm_memory_grow(0, (top + size - have + PAGE - 1) / PAGE) == (size_t)-1) return 0;
    Block *block = (Block *)(uintptr_t)top;
    top += size;
    block->size = size;
    live_bytes += size;
    return block + 1;
}

static void release(void *pointer) {
    Block *block = (Block *)pointer - 1, *before = 0, **link = &free_blocks;
    live_bytes -= block->size;
    while (*link && *link < block) {
        before = *link;
        link = &(*link)->next;
    }
    block->next = *link;
    *link = block;
    if (block->next && (u8 *)block + block->size == (u8 *)block->next) {
        block->size += block->next->size;
        block->next = block->next->next;
    }
    if (before && (u8 *)before + before->size == (u8 *)block) {
        before->size += block->size;
        before->next = block->next;
    }
}

typedef struct Node {
    struct Node *left, *right;
    i32 key;
    u32 count;
    u8 filler[]; /* As many bytes as the key says, modulo 200: blocks of many sizes. */
} Node;

static Node *root;

EXPORT(insert) i32 insert(i32 key) {
    Node **link = &root;
    while (*link) {
        if ((*link)->key == key) return (i32)++(*link)->count;
        link = key < (*link)->key ? &(*link)->left : &(*link)->right;
    }
    u32 filler = (u32)key % 200;
    Node *node = allocate(sizeof(Node) + filler);
    if (!node) return -1;
    *node = (Node){.key = key, .count = 1};
    for (u32 i = 0; i < filler; i++) node->filler[i] = (u8)key;
    *link = node;
    return 1;
}

EXPORT(remove_key) i32 remove_key(i32 key) {
    Node **link = &root;
    while (*link && (*link)->key != key) link = key < (*link)->key ? &(*link)->left : &(*link)->right;
    Node *node = *link;
    if (!node) return 0;
    for (u32 i = 0; i < (u32)key % 200; i++)
        if (node->filler[i] != (u8)key) return -1;
    if (!node->left || !node->right)
        *link = node->left ? node->left : node->right;
    else {
        Node **heir_link = &node->right;
        while ((*heir_link)->left) heir_link = &(*heir_link)->left;
        Node *heir = *heir_link;
        *heir_link = heir->right;
        heir->left = node->left;
        heir->right = node->right;
        *link = heir;
    }
    u32 count = node->count;
    release(node);
    return (i32)count;
}

static i32 *put_in_order(const Node *node, i32 *to) {
    if (!node) return to;
    to = put_in_order(node->left, to);
    *to++ = node->key;
    return put_in_order(node->right, to);
}

/* Writes the keys to `output` in order and returns how many there are. */
EXPORT(list) i32 list(void) { return (i32)(put_in_order(root, (i32 *)(void *)output) - (i32 *)(void *)output); }

EXPORT(allocated) i32 allocated(void) { return (i32)live_bytes; }

/* How many blocks the free list has: 1 or 0 once everything is released, if joining works. */
EXPORT(fragments) i32 fragments(void) {
    i32 count = 0;
    for (const Block *block = free_blocks; block; block = block->next) count++;
    return count;
}
