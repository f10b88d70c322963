/*
 * Runs commands the way a container runtime runs plugins, and measures each from exec to exit.
 * A parent as large as Node.js would cost more than what it measures; this one is small and spawns by vfork.
 * Called by runner.ts, which writes the plan and reads the samples.
 *
 * Plan, on stdin, a line each, fields separated by tabs:
 *   subject <path> <stdin file> [<name>=<value> ...]      subjects are numbered from 0; {n} in a value is the run's number
 *   batch <subject> <at once> <first n> <count>
 * Answer, on stdout, after the last batch:
 *   run <batch> <n> <wall ns> <user µs> <system µs>       batches are numbered from 0
 *   batch <batch> <wall ns>
 * A run that does not exit with 0 ends everything: what it printed goes to stderr, and the exit code is 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FIELDS = 32, MAX_SUBJECTS = 64, MAX_AT_ONCE = 256, VALUE_BYTES = 1024 };

struct subject {
  char *path, *stdin_file;
  char *variables[MAX_FIELDS];
};

/* One run that is under way; its output stays in `output` for the case that it fails. */
struct slot {
  pid_t pid;
  int output;
  long number;
  long long start_ns;
};

struct sample {
  int batch;
  long number;
  long long wall_ns, user_us, system_us;
};

static struct subject subjects[MAX_SUBJECTS];
static struct slot slots[MAX_AT_ONCE];
static struct sample *samples;
static long long *batch_ns;
static int subject_count, batch_count;
static size_t sample_count, sample_room;

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

static void *grow(void *memory, size_t bytes) {
  void *grown = realloc(memory, bytes);
  if (grown == NULL) fail("Out of memory");
  return grown;
}

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Copies `text` into `to` with every {n} replaced by `number`. */
static void substitute(char *to, const char *text, long number) {
  char digits[24];
  size_t used = 0, digit_count = (size_t)snprintf(digits, sizeof digits, "%ld", number);
  while (*text != 0) {
    int is_mark = strncmp(text, "{n}", 3) == 0;
    const char *piece = is_mark ? digits : text;
    size_t length = is_mark ? digit_count : 1;
    if (used + length >= VALUE_BYTES) fail("A variable is longer than %d bytes", VALUE_BYTES);
    memcpy(to + used, piece, length);
    used += length;
    text += is_mark ? 3 : 1;
  }
  to[used] = 0;
}

static void start(struct slot *slot, const struct subject *subject, long number) {
  static char values[MAX_FIELDS][VALUE_BYTES];
  char *environment[MAX_FIELDS + 1], *arguments[] = {subject->path, NULL};
  int count = 0;
  for (; subject->variables[count] != NULL; count++) {
    substitute(values[count], subject->variables[count], number);
    environment[count] = values[count];
  }
  environment[count] = NULL;
  if (ftruncate(slot->output, 0) != 0 || lseek(slot->output, 0, SEEK_SET) != 0) fail("Cannot empty the output");

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, subject->stdin_file, O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, slot->output, 1);
  posix_spawn_file_actions_adddup2(&actions, slot->output, 2);
  slot->number = number;
  slot->start_ns = now_ns();
  int error = posix_spawn(&slot->pid, subject->path, &actions, NULL, arguments, environment);
  if (error != 0) fail("Cannot start %s: %s", subject->path, strerror(error));
  posix_spawn_file_actions_destroy(&actions);
}

static void show_output(const struct slot *slot) {
  char bytes[4096];
  ssize_t length = pread(slot->output, bytes, sizeof bytes, 0);
  if (length > 0) fwrite(bytes, 1, (size_t)length, stderr);
}

/* Waits for any run of the batch and records it. */
static void finish_one(const struct subject *subject, int at_once) {
  struct rusage usage;
  int status;
  pid_t pid = wait4(-1, &status, 0, &usage);
  long long end_ns = now_ns();
  struct slot *slot = slots;
  while (slot < slots + at_once && slot->pid != pid) slot++;
  if (pid < 0 || slot == slots + at_once) fail("Lost a child: %s", strerror(errno));
  if (status != 0) {
    show_output(slot);
    fail("Run %ld of %s ended with status %#x", slot->number, subject->path, status);
  }
  slot->pid = 0;
  if (sample_count == sample_room) {
    sample_room = sample_room * 2 + 1024;
    samples = grow(samples, sample_room * sizeof *samples);
  }
  samples[sample_count++] = (struct sample){
      batch_count, slot->number, end_ns - slot->start_ns,
      usage.ru_utime.tv_sec * 1000000LL + usage.ru_utime.tv_usec,
      usage.ru_stime.tv_sec * 1000000LL + usage.ru_stime.tv_usec,
  };
}

static void run_batch(const struct subject *subject, int at_once, long first, long count) {
  long started = 0, running = 0;
  long long start_ns = now_ns();
  while (started < count || running > 0) {
    while (started < count && running < at_once) {
      struct slot *slot = slots;
      while (slot->pid != 0) slot++;
      start(slot, subject, first + started++);
      running++;
    }
    finish_one(subject, at_once);
    running--;
  }
  batch_ns = grow(batch_ns, (size_t)(batch_count + 1) * sizeof *batch_ns);
  batch_ns[batch_count++] = now_ns() - start_ns;
}

static int split(char *line, char **fields) {
  int count = 0;
  line[strcspn(line, "\n")] = 0;
  for (char *field; (field = strsep(&line, "\t")) != NULL; fields[count++] = field)
    if (count == MAX_FIELDS - 1) fail("A line has more than %d fields", MAX_FIELDS - 1);
  fields[count] = NULL;
  return count;
}

static void obey(char *line) {
  char *fields[MAX_FIELDS];
  int count = split(line, fields);
  if (count >= 3 && strcmp(fields[0], "subject") == 0) {
    if (subject_count == MAX_SUBJECTS) fail("More than %d subjects", MAX_SUBJECTS);
    struct subject *subject = &subjects[subject_count++];
    subject->path = strdup(fields[1]);
    subject->stdin_file = strdup(fields[2]);
    for (int i = 3; i < count; i++) subject->variables[i - 3] = strdup(fields[i]);
  } else if (count == 5 && strcmp(fields[0], "batch") == 0) {
    int subject = atoi(fields[1]), at_once = atoi(fields[2]);
    if (subject < 0 || subject >= subject_count || at_once < 1 || at_once > MAX_AT_ONCE) fail("Bad batch");
    run_batch(&subjects[subject], at_once, atol(fields[3]), atol(fields[4]));
  } else {
    fail("Cannot read the plan at \"%s\"", fields[0]);
  }
}

int main(void) {
  char *line = NULL;
  size_t room = 0;
  for (int i = 0; i < MAX_AT_ONCE; i++)
    if ((slots[i].output = memfd_create("output", MFD_CLOEXEC)) < 0) fail("memfd_create: %s", strerror(errno));
  while (getline(&line, &room, stdin) > 0) obey(line);
  for (size_t i = 0; i < sample_count; i++) {
    struct sample *sample = &samples[i];
    printf("run %d %ld %lld %lld %lld\n", sample->batch, sample->number, sample->wall_ns, sample->user_us,
           sample->system_us);
  }
  for (int i = 0; i < batch_count; i++) printf("batch %d %lld\n", i, batch_ns[i]);
  return 0;
}
