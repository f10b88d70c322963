#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "text.h"

/* Room for two numbers of at most 20 digits, one of 9, and the suffixes. */
#define NAME_SIZE 80

static void add_name(struct text *name) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    text_add_number(name, (uint64_t)now.tv_sec);
    text_add(name, ".");
    for (long unit = 100000000; unit > 0; unit /= 10) text_add_number(name, (uint64_t)(now.tv_nsec / unit % 10));
    text_add(name, "-");
    text_add_number(name, (uint64_t)getpid());
    text_add(name, ".del");
}

static int open_directory(const char *path) {
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Creating a directory adds an entry to its parent, which must be synced as well. */
static int create_directory(const char *path) {
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return -1;
    int fd = open_directory(path);
    int parent = fd < 0 ? -1 : openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || fsync(parent) != 0) {
        int error = errno;
        if (parent >= 0) close(parent);
        if (fd >= 0) close(fd);
        errno = error;
        return -1;
    }
    close(parent);
    return fd;
}

/* Returns 0, or an errno and leaves no file. */
static int write_file(int directory, const char *name, const char *bytes, size_t length) {
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    int error = io_write_all(fd, bytes, length);
    if (error == 0 && fsync(fd) != 0) error = errno;
    if (close(fd) != 0 && error == 0) error = errno;
    if (error != 0) unlinkat(directory, name, 0);
    return error;
}

/* Renames the file to its final name, and syncs the directory. */
static int publish_file(int directory, const char *temporary, const char *final) {
    if (renameat(directory, temporary, directory, final) == 0) return fsync(directory) == 0 ? 0 : errno;
    int error = errno;
    unlinkat(directory, temporary, 0);
    return error;
}

int spool_write(const char *path, const char *bytes, size_t length) {
    char final[NAME_SIZE] = "", temporary[NAME_SIZE] = "";
    add_name(&(struct text){.start = final, .capacity = NAME_SIZE - 1});
    struct text name = {.start = temporary, .capacity = NAME_SIZE - 1};
    text_add(&name, final);
    text_add(&name, ".tmp");

    int directory = open_directory(path);
    if (directory < 0 && errno == ENOENT) directory = create_directory(path);
    if (directory < 0) return errno;
    int error = write_file(directory, temporary, bytes, length);
    if (error == 0) error = publish_file(directory, temporary, final);
    close(directory);
    return error;
}
