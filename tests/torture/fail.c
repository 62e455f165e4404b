/* A library for LD_PRELOAD that makes one call of the program fail: the FAIL_AT-th of those
 * below, counted from the start of main; with FAIL_ON=1 all that follow too; with FAIL_OWN=1 of
 * those that the program makes itself, none of its libraries' (cairo's fonts end without memory).
 * Where that call was reached, the file FAIL_MARK is made. glibc only: it calls the allocator by
 * glibc's own names, since dlsym allocates. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static bool counting;
static long seen;
static long fail_at;
static bool fail_on;
static bool own_only;
static uintptr_t own_begin, own_end; /* where the program's code lies */

/* Not by open and close, which are replaced below. */
static void leave_mark(void)
{
    const char *path = getenv("FAIL_MARK");
    if (path)
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, 0600));
}

static bool fails_for(const void *caller, int why)
{
    if (!counting || (own_only && ((uintptr_t)caller < own_begin || (uintptr_t)caller >= own_end)))
        return false;
    seen++;
    if (seen == fail_at)
        leave_mark();
    bool fails = seen == fail_at || (fail_on && seen > fail_at);
    if (fails)
        errno = why;
    return fails;
}

void *malloc(size_t bytes)
{
    return fails_for(__builtin_return_address(0), ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails_for(__builtin_return_address(0), ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return fails_for(__builtin_return_address(0), ENOMEM) ? NULL : __libc_realloc(old, bytes);
}

/* Sets next to the definition that this library stands before, the way POSIX shows. */
#define FIND_NEXT(name) *(void **)&next = dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *text, size_t len)
{
    ssize_t (*next)(int, const void *, size_t);
    FIND_NEXT("write");
    return fails_for(__builtin_return_address(0), ENOSPC) ? -1 : next(fd, text, len);
}

ssize_t read(int fd, void *text, size_t len)
{
    ssize_t (*next)(int, void *, size_t);
    FIND_NEXT("read");
    return fails_for(__builtin_return_address(0), EIO) ? -1 : next(fd, text, len);
}

int open(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...);
    va_list ap;
    va_start(ap, flags);
    unsigned mode = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
    va_end(ap);
    FIND_NEXT("open");
    return fails_for(__builtin_return_address(0), EMFILE) ? -1 : next(path, flags, mode);
}

/* The descriptor is gone, as it is after a true failure. */
int close(int fd)
{
    int (*next)(int);
    FIND_NEXT("close");
    int result = next(fd);
    return fails_for(__builtin_return_address(0), EIO) ? -1 : result;
}

int fsync(int fd)
{
    int (*next)(int);
    FIND_NEXT("fsync");
    return fails_for(__builtin_return_address(0), EIO) ? -1 : next(fd);
}

int rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *);
    FIND_NEXT("rename");
    return fails_for(__builtin_return_address(0), EACCES) ? -1 : next(from, to);
}

ssize_t pread(int fd, void *text, size_t len, off_t at)
{
    ssize_t (*next)(int, void *, size_t, off_t);
    FIND_NEXT("pread");
    return fails_for(__builtin_return_address(0), EIO) ? -1 : next(fd, text, len, at);
}

/* What glibc's checked headers call where there is no mode. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    int (*next)(const char *, int);
    FIND_NEXT("__open_2");
    return fails_for(__builtin_return_address(0), EMFILE) ? -1 : next(path, flags);
}

int dup(int fd)
{
    int (*next)(int);
    FIND_NEXT("dup");
    return fails_for(__builtin_return_address(0), EMFILE) ? -1 : next(fd);
}

int dup2(int from, int to)
{
    int (*next)(int, int);
    FIND_NEXT("dup2");
    return fails_for(__builtin_return_address(0), EBUSY) ? -1 : next(from, to);
}

int fstat(int fd, struct stat *out)
{
    int (*next)(int, struct stat *);
    FIND_NEXT("fstat");
    return fails_for(__builtin_return_address(0), EIO) ? -1 : next(fd, out);
}

int stat(const char *path, struct stat *out)
{
    int (*next)(const char *, struct stat *);
    FIND_NEXT("stat");
    return fails_for(__builtin_return_address(0), EIO) ? -1 : next(path, out);
}

int lstat(const char *path, struct stat *out)
{
    int (*next)(const char *, struct stat *);
    FIND_NEXT("lstat");
    return fails_for(__builtin_return_address(0), EIO) ? -1 : next(path, out);
}

int fchmod(int fd, mode_t mode)
{
    int (*next)(int, mode_t);
    FIND_NEXT("fchmod");
    return fails_for(__builtin_return_address(0), EPERM) ? -1 : next(fd, mode);
}

int ftruncate(int fd, off_t bytes)
{
    int (*next)(int, off_t);
    FIND_NEXT("ftruncate");
    return fails_for(__builtin_return_address(0), EIO) ? -1 : next(fd, bytes);
}

off_t lseek(int fd, off_t at, int from)
{
    off_t (*next)(int, off_t, int);
    FIND_NEXT("lseek");
    return fails_for(__builtin_return_address(0), EIO) ? -1 : next(fd, at, from);
}

char *realpath(const char *path, char *out)
{
    char *(*next)(const char *, char *);
    FIND_NEXT("realpath");
    return fails_for(__builtin_return_address(0), EACCES) ? NULL : next(path, out);
}

FILE *tmpfile(void)
{
    FILE *(*next)(void);
    FIND_NEXT("tmpfile");
    return fails_for(__builtin_return_address(0), EMFILE) ? NULL : next();
}

FILE *fdopen(int fd, const char *mode)
{
    FILE *(*next)(int, const char *);
    FIND_NEXT("fdopen");
    return fails_for(__builtin_return_address(0), EMFILE) ? NULL : next(fd, mode);
}

FILE *fopencookie(void *cookie, const char *mode, cookie_io_functions_t calls)
{
    FILE *(*next)(void *, const char *, cookie_io_functions_t);
    FIND_NEXT("fopencookie");
    return fails_for(__builtin_return_address(0), ENOMEM) ? NULL : next(cookie, mode, calls);
}

void *mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t from)
{
    void *(*next)(void *, size_t, int, int, int, off_t);
    FIND_NEXT("mmap");
    return fails_for(__builtin_return_address(0), ENOMEM)
               ? MAP_FAILED
               : next(at, bytes, rights, flags, fd, from);
}

pid_t fork(void)
{
    pid_t (*next)(void);
    FIND_NEXT("fork");
    return fails_for(__builtin_return_address(0), EAGAIN) ? -1 : next();
}

int pipe(int fds[2])
{
    int (*next)(int[2]);
    FIND_NEXT("pipe");
    return fails_for(__builtin_return_address(0), EMFILE) ? -1 : next(fds);
}

DIR *opendir(const char *path)
{
    DIR *(*next)(const char *);
    FIND_NEXT("opendir");
    return fails_for(__builtin_return_address(0), EMFILE) ? NULL : next(path);
}

void *dlopen(const char *path, int flags)
{
    void *(*next)(const char *, int);
    FIND_NEXT("dlopen");
    return fails_for(__builtin_return_address(0), ENOENT) ? NULL : next(path, flags);
}

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*next)(const char *, const char *);
    FIND_NEXT("fopen");
    return fails_for(__builtin_return_address(0), EMFILE) ? NULL : next(path, mode);
}

int fflush(FILE *file)
{
    int (*next)(FILE *);
    FIND_NEXT("fflush");
    int result = next(file);
    return fails_for(__builtin_return_address(0), ENOSPC) ? EOF : result;
}

int fclose(FILE *file)
{
    int (*next)(FILE *);
    FIND_NEXT("fclose");
    int result = next(file);
    return fails_for(__builtin_return_address(0), ENOSPC) ? EOF : result;
}

/* The first object is the program. */
static int find_own(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            own_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            own_end = own_begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **vars)
{
    const char *at = getenv("FAIL_AT");
    const char *on = getenv("FAIL_ON");
    fail_at = at ? strtol(at, NULL, 10) : 0;
    const char *own = getenv("FAIL_OWN");
    fail_on = on && *on == '1';
    own_only = own && *own == '1';
    dl_iterate_phdr(find_own, NULL);
    counting = true;
    return real_main(argc, argv, vars);
}

/* What the program starts with; its main is put behind ours. */
int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                      int (*init)(int, char **, char **), void (*fini)(void), void (*unload)(void),
                      void *stack_end);

int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                      int (*init)(int, char **, char **), void (*fini)(void), void (*unload)(void),
                      void *stack_end)
{
    int (*next)(int (*)(int, char **, char **), int, char **, int (*)(int, char **, char **),
                void (*)(void), void (*)(void), void *);
    FIND_NEXT("__libc_start_main");
    real_main = program;
    return next(counted_main, argc, argv, init, fini, unload, stack_end);
}
