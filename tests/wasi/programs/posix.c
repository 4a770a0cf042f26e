/* posix FOLDER: does to files what programs do, by POSIX's functions, and tells what came of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void tell(const char *what, int result) {
  printf("%s: %s\n", what, result < 0 ? strerror(errno) : "done");
}

static int by_name(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }

static void list(const char *path) {
  DIR *folder = opendir(path);
  if (!folder) {
    tell("opendir", -1);
    return;
  }
  char *names[32];
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder)) && count < 32;) {
    char line[300];
    snprintf(line, sizeof line, "%s%s", entry->d_name, entry->d_type == DT_DIR ? "/" : entry->d_type == DT_LNK ? "@" : "");
    names[count++] = strdup(line);
  }
  closedir(folder);
  qsort(names, count, sizeof *names, by_name);
  for (int i = 0; i < count; i++) printf("%s%s", names[i], i + 1 < count ? " " : "\n");
}

int main(int argc, char **argv) {
  if (argc < 2 || chdir(argv[1])) {
    perror(argc < 2 ? "a folder" : argv[1]);
    return 1;
  }
  char buffer[64] = {0};
  struct stat status;
  tell("mkdir", mkdir("folder", 0777));
  tell("mkdir again", mkdir("folder", 0777));
  int file = open("folder/file", O_RDWR | O_CREAT | O_EXCL, 0666);
  tell("create", file);
  tell("create again", open("folder/file", O_RDWR | O_CREAT | O_EXCL, 0666));
  printf("write: %zd\n", write(file, "hello, world", 12));
  printf("seek: %lld\n", (long long)lseek(file, -5, SEEK_END));
  printf("read: %zd %s\n", read(file, buffer, 60), buffer);
  printf("pread: %zd %.5s\n", pread(file, buffer, 5, 0), buffer);
  tell("truncate", ftruncate(file, 5));
  tell("fstat", fstat(file, &status));
  printf("size: %lld, regular: %d, links: %d\n", (long long)status.st_size, S_ISREG(status.st_mode), (int)status.st_nlink);
  tell("close", close(file));
  tell("close again", close(file));
  tell("symlink", symlink("folder/file", "link"));
  printf("readlink: %zd\n", readlink("link", buffer, sizeof buffer));
  tell("open the link", open("link", O_RDONLY));
  tell("open the link itself", open("link", O_RDONLY | O_NOFOLLOW));
  tell("link", link("folder/file", "again"));
  tell("stat", stat("again", &status));
  printf("links: %d\n", (int)status.st_nlink);
  tell("rename", rename("again", "folder/renamed"));
  list(".");
  list("folder");
  tell("rmdir what is not empty", rmdir("folder"));
  tell("unlink a folder", unlink("folder"));
  tell("unlink", unlink("folder/renamed"));
  tell("open what is gone", open("folder/renamed", O_RDONLY));
  tell("open a file as a folder", open("folder/file/x", O_RDONLY));
  tell("open a folder to write", open("folder", O_RDWR));
  tell("read a folder", read(open("folder", O_RDONLY), buffer, 8));
  tell("open what is above", open("../../x", O_RDONLY));
  tell("append", file = open("log", O_WRONLY | O_CREAT | O_APPEND, 0666));
  printf("write: %zd %zd\n", write(file, "one ", 4), (lseek(file, 0, SEEK_SET), write(file, "two", 3)));
  tell("times", utimensat(AT_FDCWD, "log", (struct timespec[]){{1000, 0}, {2000, 500}}, 0));
  stat("log", &status);
  printf("size: %lld, modified: %lld\n", (long long)status.st_size, (long long)status.st_mtim.tv_sec);
  struct timespec before, after, pause = {0, 20 * 1000 * 1000};
  clock_gettime(CLOCK_MONOTONIC, &before);
  nanosleep(&pause, NULL);
  clock_gettime(CLOCK_MONOTONIC, &after);
  long long passed = (after.tv_sec - before.tv_sec) * 1000000000ll + after.tv_nsec - before.tv_nsec;
  printf("slept: %s\n", passed >= pause.tv_nsec ? "long enough" : "too short");
  struct pollfd streams[] = {{.fd = 1, .events = POLLOUT}};
  printf("poll: %d\n", poll(streams, 1, 1000));
  printf("terminal: %d\n", isatty(1));
  unsigned char random[16] = {0}, none[16] = {0};
  tell("random", getentropy(random, sizeof random));
  printf("chance: %d\n", memcmp(random, none, sizeof none) != 0);
  fprintf(stderr, "%s\n", getenv("GREETING") ? getenv("GREETING") : "no greeting");
  return 7;
}
