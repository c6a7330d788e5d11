/* A disk that fails: preloaded into a process, it lets one write, sync or truncation of a bank's files go wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long calls;
static long failing = -1; /* which call fails first; further ones too if lasting */
static int lasting;
static int code;

/* Called by the test: begin to count anew. */
void faulty_arm(long first, int keep_on, int error) {
  calls = 0;
  failing = first;
  lasting = keep_on;
  code = error;
}

long faulty_calls(void) { return calls; }

static int fails(int descriptor) {
  char link[64], name[PATH_MAX];
  ssize_t size;
  if (failing < 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  size = readlink(link, name, sizeof name - 1);
  if (size < 0) return 0;
  name[size] = 0;
  if (!strstr(name, "/faulty/") || strstr(name, "-shm")) return 0;
  calls++;
  if (calls == failing || (lasting && calls > failing)) {
    errno = code;
    return 1;
  }
  return 0;
}

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  return fails(fd) ? -1 : REAL(ssize_t, "pwrite", int, const void *, size_t, off_t)(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  return fails(fd) ? -1 : REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t)(fd, data, size, at);
}
ssize_t write(int fd, const void *data, size_t size) {
  return fails(fd) ? -1 : REAL(ssize_t, "write", int, const void *, size_t)(fd, data, size);
}
int fsync(int fd) { return fails(fd) ? -1 : REAL(int, "fsync", int)(fd); }
int fdatasync(int fd) { return fails(fd) ? -1 : REAL(int, "fdatasync", int)(fd); }
int ftruncate(int fd, off_t size) { return fails(fd) ? -1 : REAL(int, "ftruncate", int, off_t)(fd, size); }
int ftruncate64(int fd, off64_t size) { return fails(fd) ? -1 : REAL(int, "ftruncate64", int, off64_t)(fd, size); }
