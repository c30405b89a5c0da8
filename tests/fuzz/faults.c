// Loaded before a program (LD_PRELOAD), it lets one call fail, once, in the program or one of its workers. STEPSIM_FAULT says which:
//   allocation:K   the K-th request for memory       stack:K   the first request of the K-th place in the code that asks
//   open:K, read:K, write:K, ...                     the K-th such call (see `operations`)
//   clock:0        nothing fails, and the clock on the wall jumps by up to a year with each look at it
// STEPSIM_FAULT_TRACE=1 shows who called. STEPSIM_FAULT_REPORT names a file that gets how often each was called, when main() returns. What is called before main() is not ours.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

enum { allocation_op, stack_op, open_op, read_op, write_op, fsync_op, rename_op, close_op, mmap_op, fork_op, pipe_op,
       poll_op, wait_op, truncate_op, remove_op, stat_op, lock_op, mode_op, folder_op, list_op, clock_op, operations_count };
static const char *const operations[operations_count] = {
    "allocation", "stack", "open", "read", "write", "fsync", "rename", "close", "mmap", "fork", "pipe",
    "poll", "wait", "truncate", "remove", "stat", "lock", "mode", "folder", "list", "clock"};

// Of the program and all its workers together.
enum { most_stacks = 1 << 18 };
struct shared {
  atomic_long calls[operations_count];
  atomic_int failed, of_hdf5;
  _Atomic uint64_t stacks[most_stacks];
};
static struct shared *shared;
static int wanted_op = -1;
static long wanted_call;
static bool on;  // main() runs
static _Thread_local bool inside;

static bool fails(int op) {
  if (!on || shared == NULL) return false;
  if (atomic_fetch_add(&shared->calls[op], 1) + 1 != wanted_call || op != wanted_op) return false;
  atomic_store(&shared->failed, 1);
  if (getenv("STEPSIM_FAULT_TRACE") != NULL) {
    void *frames[40];
    inside = true;
    backtrace_symbols_fd(frames, backtrace(frames, 40), 2);
    inside = false;
  }
  return true;
}

// Whether nobody asked from there before.
static bool is_new_stack(void) {
  enum { depth = 9, own = 3 };  // frames; those of this file say nothing
  void *frames[depth];
  inside = true;
  const int count = backtrace(frames, depth);
  inside = false;
  uint64_t hash = 0xcbf29ce484222325;
  for (int i = own; i < count; ++i) hash = (hash ^ (uintptr_t)frames[i]) * 0x100000001b3;
  hash |= 1;
  for (uint64_t place = hash % most_stacks;; place = (place + 1) % most_stacks) {
    uint64_t empty = 0;
    if (atomic_compare_exchange_strong(&shared->stacks[place], &empty, hash)) return true;
    if (empty == hash) return false;
  }
}

// HDF5 does not look whether it got memory. It is linked into the program, so its code is where its symbols are: STEPSIM_FAULT_HDF5 says
// from where to where, in the program or in its shared library ("1a0-2f0,400-500", hexadecimal, ascending).
enum { most_spans = 4096 };
static uintptr_t spans[most_spans][2];
static int span_count;

static int find_hdf5(struct dl_phdr_info *library, size_t size, void *is_shared) {
  (void)size;
  if (*(const bool *)is_shared && strstr(library->dlpi_name, "libhdf5") == NULL) return 0;
  const char *at = getenv("STEPSIM_FAULT_HDF5");
  for (char *end; at != NULL && *at != 0 && span_count < most_spans; ++span_count) {
    spans[span_count][0] = library->dlpi_addr + strtoul(at, &end, 16);
    spans[span_count][1] = library->dlpi_addr + strtoul(end + 1, &end, 16);
    at = *end == ',' ? end + 1 : end;
  }
  return 1;  // the program itself comes first
}

static bool is_of_hdf5(uintptr_t frame) {
  int from = 0, to = span_count;
  while (from < to) {
    const int middle = from + (to - from) / 2;
    if (frame < spans[middle][1])
      to = middle;
    else
      from = middle + 1;
  }
  return from < span_count && frame >= spans[from][0];
}

static bool asks_for_hdf5(void) {
  enum { depth = 32 };
  void *frames[depth];
  inside = true;
  const int count = backtrace(frames, depth);
  inside = false;
  for (int i = 0; i < count; ++i)
    if (is_of_hdf5((uintptr_t)frames[i])) {
      atomic_store(&shared->of_hdf5, 1);
      return true;
    }
  return false;
}

static bool memory_fails(void) {
  if (!on || shared == NULL || inside) return false;
  if (fails(allocation_op)) return !asks_for_hdf5();
  return (wanted_op == stack_op || wanted_op < 0) && is_new_stack() && fails(stack_op) && !asks_for_hdf5();
}

void *malloc(size_t size) {
  if (!memory_fails()) return __libc_malloc(size);
  errno = ENOMEM;
  return NULL;
}
void *calloc(size_t count, size_t size) {
  if (!memory_fails()) return __libc_calloc(count, size);
  errno = ENOMEM;
  return NULL;
}
void *realloc(void *old, size_t size) {
  if (!memory_fails()) return __libc_realloc(old, size);
  errno = ENOMEM;
  return NULL;
}
void *aligned_alloc(size_t alignment, size_t size) {
  if (!memory_fails()) return __libc_memalign(alignment, size);
  errno = ENOMEM;
  return NULL;
}
int posix_memalign(void **to, size_t alignment, size_t size) {
  if (memory_fails()) return ENOMEM;
  *to = __libc_memalign(alignment, size);
  return *to == NULL ? ENOMEM : 0;
}

// RESULT NAME(DECLARED) fails with WHY as OP, else is the real one called with GIVEN.
#define WRAP(op, result, name, failure, why, declared, given) \
  result name declared {                                      \
    static result(*real) declared;                            \
    if (real == NULL) real = (result(*) declared)dlsym(RTLD_NEXT, #name); \
    if (fails(op)) {                                          \
      errno = why;                                            \
      return failure;                                         \
    }                                                         \
    return real given;                                        \
  }

#define WRAP_OPEN(name, declared, given)                                       \
  int name declared {                                                          \
    static int (*real) declared;                                               \
    if (real == NULL) real = (int (*) declared)dlsym(RTLD_NEXT, #name);        \
    va_list rest;                                                              \
    va_start(rest, flags);                                                     \
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                              \
    if (fails(open_op)) {                                                      \
      errno = EMFILE;                                                          \
      return -1;                                                               \
    }                                                                          \
    return real given;                                                         \
  }
WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
WRAP_OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
WRAP(open_op, FILE *, fopen, NULL, EMFILE, (const char *path, const char *mode), (path, mode))
WRAP(open_op, FILE *, fopen64, NULL, EMFILE, (const char *path, const char *mode), (path, mode))
WRAP(read_op, ssize_t, read, -1, EIO, (int file, void *to, size_t size), (file, to, size))
WRAP(read_op, ssize_t, pread, -1, EIO, (int file, void *to, size_t size, off_t from), (file, to, size, from))
WRAP(read_op, ssize_t, pread64, -1, EIO, (int file, void *to, size_t size, off64_t from), (file, to, size, from))
WRAP(write_op, ssize_t, write, -1, ENOSPC, (int file, const void *from, size_t size), (file, from, size))
WRAP(write_op, size_t, fwrite, 0, ENOSPC, (const void *from, size_t size, size_t count, FILE *file), (from, size, count, file))
WRAP(write_op, int, fputs, EOF, ENOSPC, (const char *text, FILE *file), (text, file))
WRAP(write_op, int, fflush, EOF, ENOSPC, (FILE * file), (file))
WRAP(fsync_op, int, fsync, -1, EIO, (int file), (file))
WRAP(fsync_op, int, fdatasync, -1, EIO, (int file), (file))
WRAP(rename_op, int, rename, -1, ENOSPC, (const char *from, const char *to), (from, to))
WRAP(mmap_op, void *, mmap, MAP_FAILED, ENOMEM, (void *at, size_t size, int rights, int flags, int file, off_t from),
     (at, size, rights, flags, file, from))
WRAP(fork_op, pid_t, fork, -1, EAGAIN, (void), ())
WRAP(pipe_op, int, pipe, -1, EMFILE, (int ends[2]), (ends))
WRAP(poll_op, int, poll, -1, ENOMEM, (struct pollfd * files, nfds_t count, int limit), (files, count, limit))
WRAP(wait_op, pid_t, waitpid, -1, EINTR, (pid_t process, int *status, int options), (process, status, options))
WRAP(truncate_op, int, ftruncate, -1, EIO, (int file, off_t size), (file, size))
WRAP(truncate_op, int, ftruncate64, -1, EIO, (int file, off64_t size), (file, size))
WRAP(remove_op, int, unlink, -1, EACCES, (const char *path), (path))
WRAP(remove_op, int, unlinkat, -1, EACCES, (int folder, const char *path, int flags), (folder, path, flags))
WRAP(remove_op, int, remove, -1, EACCES, (const char *path), (path))
WRAP(rename_op, int, linkat, -1, EMLINK, (int from_folder, const char *from, int to_folder, const char *to, int flags),
     (from_folder, from, to_folder, to, flags))
WRAP(stat_op, int, access, -1, EACCES, (const char *path, int rights), (path, rights))
WRAP(stat_op, int, stat, -1, EIO, (const char *path, struct stat *to), (path, to))
WRAP(stat_op, int, lstat, -1, EIO, (const char *path, struct stat *to), (path, to))
WRAP(stat_op, int, fstat, -1, EIO, (int file, struct stat *to), (file, to))
WRAP(stat_op, int, fstatat, -1, EIO, (int folder, const char *path, struct stat *to, int flags), (folder, path, to, flags))
WRAP(mode_op, int, fchmod, -1, EPERM, (int file, mode_t mode), (file, mode))
WRAP(mode_op, int, fchown, -1, EACCES, (int file, uid_t owner, gid_t group), (file, owner, group))
WRAP(folder_op, int, mkdir, -1, EACCES, (const char *path, mode_t mode), (path, mode))
WRAP(list_op, DIR *, opendir, NULL, EMFILE, (const char *path), (path))
WRAP(list_op, DIR *, fdopendir, NULL, EMFILE, (int file), (file))

// One that fails has closed the file all the same.
int close(int file) {
  const bool wanted = fails(close_op);
  const int result = (int)syscall(SYS_close, file);
  if (wanted) errno = EIO;
  return wanted ? -1 : result;
}

int fcntl(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void *const given = va_arg(rest, void *);
  va_end(rest);
  if ((command == F_SETLK || command == F_OFD_SETLK) && fails(lock_op)) {
    errno = ENOLCK;
    return -1;
  }
  return (int)syscall(SYS_fcntl, file, command, given);
}

int clock_gettime(clockid_t clock, struct timespec *to) {
  static int (*real)(clockid_t, struct timespec *);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, to);
  if (on && wanted_op == clock_op && clock == CLOCK_REALTIME) to->tv_sec += (to->tv_nsec * 2654435761) % 63072000 - 31536000;
  return result;
}

// ---- between the beginning and the end of main() ----

static int (*real_main)(int, char **, char **);

static void report(void) {
  const char *const path = getenv("STEPSIM_FAULT_REPORT");
  if (path == NULL || shared == NULL) return;
  FILE *const file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "failed %d\nof_hdf5 %d\n", atomic_load(&shared->failed), atomic_load(&shared->of_hdf5));
  for (int op = 0; op < operations_count; ++op) fprintf(file, "%s %ld\n", operations[op], atomic_load(&shared->calls[op]));
  fclose(file);
}

static int wrapped_main(int argc, char **argv, char **environment) {
  on = true;
  const int code = real_main(argc, argv, environment);
  on = false;
  report();
  return code;
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end) {
  typedef int start(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
  start *const real = (start *)dlsym(RTLD_NEXT, "__libc_start_main");
  const char *const fault = getenv("STEPSIM_FAULT");
  if (fault != NULL) {
    for (int op = 0; op < operations_count; ++op) {
      const size_t length = strlen(operations[op]);
      if (strncmp(fault, operations[op], length) == 0 && fault[length] == ':') {
        wanted_op = op;
        wanted_call = atol(fault + length + 1);
      }
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) shared = NULL;
    bool is_shared = getenv("STEPSIM_FAULT_SHARED") != NULL;
    dl_iterate_phdr(find_hdf5, &is_shared);
    void *frames[2];
    backtrace(frames, 2);  // what it loads first asks for memory
  }
  real_main = main;
  return real(wrapped_main, argc, argv, init, fini, rtld_fini, stack_end);
}
