/* LD_PRELOAD: appends what a program does to files to the file WATCH_LOG, a line a call. With
   WATCH_DISTURB every other call is interrupted, and a write takes half of its bytes. Built by
   train_faults_test.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void note(const char* format, ...) {
    static int log = -1;
    if (log < 0) {
        const char* path = getenv("WATCH_LOG");
        if (path == NULL) return;
        log = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    }
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (syscall(SYS_write, log, line, (size_t)size) != size) abort();
}

static int interrupted(void) {
    static int count = 0;
    if (getenv("WATCH_DISTURB") == NULL || ++count % 2 == 0) return 0;
    errno = EINTR;
    return 1;
}

int open(const char* path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    if (interrupted()) return -1;
    const int descriptor = REAL(open)(path, flags, mode);
    if (flags & (O_WRONLY | O_RDWR)) note("write-open %d %s\n", descriptor, path);
    if (flags & O_DIRECTORY) note("folder %d %s\n", descriptor, path);
    return descriptor;
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
    note("write %d\n", descriptor);
    if (interrupted()) return -1;
    if (getenv("WATCH_DISTURB") != NULL) size = (size + 1) / 2;
    return REAL(write)(descriptor, bytes, size);
}

int fsync(int descriptor) {
    note("sync %d\n", descriptor);
    if (interrupted()) return -1;
    return REAL(fsync)(descriptor);
}

int close(int descriptor) {
    note("close %d\n", descriptor);
    return REAL(close)(descriptor);
}

int rename(const char* from, const char* to) {
    note("rename %s %s\n", from, to);
    return REAL(rename)(from, to);
}

int unlink(const char* path) {
    note("unlink %s\n", path);
    return REAL(unlink)(path);
}
