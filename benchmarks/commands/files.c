/* files write|read FILE MEBIBYTES PIECE: writes a file, or reads it and tells a checksum, in pieces of so many bytes. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  size_t total = (size_t)atoi(argv[3]) << 20, piece = atoi(argv[4]);
  uint8_t *data = malloc(piece);
  int writes = !strcmp(argv[1], "write");
  int file = open(argv[2], writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0666);
  if (file < 0 || !data) {
    perror(argv[2]);
    return 1;
  }
  for (size_t i = 0; i < piece; i++) data[i] = i * 31;
  uint64_t sum = 0;
  for (size_t done = 0; done < total;) {
    ssize_t count = writes ? write(file, data, piece) : read(file, data, piece);
    if (count <= 0) {
      perror(argv[1]);
      return 1;
    }
    sum = sum * 31 + data[0] + data[count - 1];
    done += count;
  }
  printf("%llu\n", (unsigned long long)sum);
  return close(file) ? 1 : 0;
}
