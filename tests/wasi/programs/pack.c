/* pack [-d]: compresses its standard input to its standard output, or the other way round.
 *
 * A run of one to 128 bytes as they are is its length less one, then the bytes. A copy of 4 to 131 bytes from up to
 * 65535 bytes before is its length plus 124, then the distance in two bytes, the low one first. Where the last four
 * bytes like these were is looked up by a hash of them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASHES 16384

static uint8_t *slurp(size_t *size) {
  size_t room = 1 << 16, used = 0, got;
  uint8_t *data = malloc(room);
  while (data && (got = fread(data + used, 1, room - used, stdin)) > 0) {
    used += got;
    if (used == room) data = realloc(data, room *= 2);
  }
  *size = used;
  return data;
}

static void literals(const uint8_t *from, const uint8_t *to) {
  while (from < to) {
    size_t count = to - from < 128 ? to - from : 128;
    putchar(count - 1);
    fwrite(from, 1, count, stdout);
    from += count;
  }
}

static void pack(const uint8_t *data, size_t size) {
  static int32_t last[HASHES];
  size_t done = 0;
  memset(last, -1, sizeof last);
  for (size_t i = 0; i + 4 <= size;) {
    uint32_t word;
    memcpy(&word, data + i, 4);
    uint32_t hash = (word * 2654435761u) >> 18;
    int32_t before = last[hash];
    last[hash] = i;
    if (before < 0 || i - before > 65535 || memcmp(data + before, data + i, 4)) {
      i++;
      continue;
    }
    size_t length = 4;
    while (length < 131 && i + length < size && data[before + length] == data[i + length]) length++;
    literals(data + done, data + i);
    putchar(length + 124);
    putchar((i - before) & 255);
    putchar((i - before) >> 8);
    done = i += length;
  }
  literals(data + done, data + size);
}

static int unpack(const uint8_t *data, size_t size) {
  size_t room = 1 << 16, used = 0, i = 0;
  uint8_t *out = malloc(room);
  while (i < size) {
    size_t code = data[i++], count = code < 128 ? code + 1 : code - 124;
    if (used + count > room) out = realloc(out, room *= 2);
    if (code < 128) {
      if (count > size - i) return 1;
      memcpy(out + used, data + i, count);
      i += count;
    } else {
      if (size - i < 2) return 1;
      size_t distance = data[i] | data[i + 1] << 8;
      i += 2;
      if (!distance || distance > used) return 1;
      for (size_t k = 0; k < count; k++) out[used + k] = out[used + k - distance];
    }
    used += count;
  }
  fwrite(out, 1, used, stdout);
  return 0;
}

int main(int argc, char **argv) {
  size_t size;
  uint8_t *data = slurp(&size);
  if (argc > 1 && !strcmp(argv[1], "-d")) {
    if (unpack(data, size)) {
      fprintf(stderr, "%s: this was not packed here\n", argv[0]);
      return 2;
    }
  } else {
    pack(data, size);
  }
  return fflush(stdout) ? 1 : 0;
}
