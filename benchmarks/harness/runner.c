/*
 * Runs commands the way a container runtime runs plugins, and measures each from exec to exit.
 * A parent as large as Node.js would cost more than what it measures; this one is small and spawns by vfork.
 *
 * Plan, on stdin, a line each, fields separated by tabs; {n} in a file's path or a value is the run's number, and one
 * {text:PATH} at a value's end what the file has, up to its first line's end:
 *   subject <path> <stdin file> [<name>=<value> ...]      subjects are numbered from 0
 *   then <path> <stdin file> [<name>=<value> ...]         next step of the subject above; {prevResult} in its
 *                                                         stdin is what the step before printed
 *   exits <status>                                        what the last step of the subject above exits with,
 *                                                         0 unless told; or "any": a step that fails ends its run,
 *                                                         not the batch
 *   batch <subject> <at once> <first n> <count> <limit ms>     after the limit no run is started; 0: no limit
 * Answer, on stdout, after the last batch:
 *   run <batch> <n> <wall ns> <user µs> <system µs> <wall ns of each step> ...       batches are numbered from 0
 *   answer <batch> <exit status> <text>                   after the run of a subject that exits with "any": what
 *                                                         its last step printed, in one line; 128 and more: the
 *                                                         signal that ended it
 *   batch <batch> <wall ns>
 * A step that exits otherwise ends everything: what it printed goes to stderr, and the exit code is 1.
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

enum { ANY_STATUS = -1 };
enum { MAX_FIELDS = 32, MAX_SUBJECTS = 64, MAX_STEPS = 8, MAX_AT_ONCE = 256, VALUE_BYTES = 1024, TEXT_BYTES = 16384 };

struct step {
  char *path, *stdin_file;
  char *variables[MAX_FIELDS];
};

struct subject {
  struct step steps[MAX_STEPS];
  int step_count, status;
};

struct sample {
  int batch, step_count;
  long number;
  long long wall_ns, user_us, system_us, step_ns[MAX_STEPS];
  int exit_status;
  char *text; /* NULL unless the subject may exit with any status. */
};

/* One run under way. The output of its last step stays in `output` for the next one, and in case it fails. No file
 * yet: 0. */
struct slot {
  pid_t pid;
  int input, output;
  long long start_ns, step_start_ns;
  struct sample sample;
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

/* Reads all that a file has into `text`; gives its length. */
static size_t read_text(int file, char *text) {
  ssize_t length = pread(file, text, TEXT_BYTES, 0);
  if (length < 0 || length == TEXT_BYTES) fail("A text cannot be read, or has %d bytes or more", TEXT_BYTES);
  text[length] = 0;
  return (size_t)length;
}

/* Replaces {text:PATH} at the end of a value by the file's first line. */
static void insert_text(char *value) {
  char *mark = strstr(value, "{text:"), *end = mark == NULL ? NULL : mark + strlen(mark) - 1;
  if (mark == NULL) return;
  *end = 0;
  int file = open(mark + 6, O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("Cannot open %s: %s", mark + 6, strerror(errno));
  ssize_t length = read(file, mark, (size_t)(VALUE_BYTES - (mark - value) - 1));
  close(file);
  if (length < 0) fail("Cannot read a text: %s", strerror(errno));
  mark[length] = 0;
  mark[strcspn(mark, "\n")] = 0;
}

static void append(int file, const char *text, size_t length) {
  if (write(file, text, length) != (ssize_t)length) fail("Cannot write a step's stdin: %s", strerror(errno));
}

static void empty(int file) {
  if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) fail("Cannot empty a file: %s", strerror(errno));
}

/* Fills the slot's input with the file's text, {prevResult} replaced by the slot's output. */
static void fill_input(struct slot *slot, const char *stdin_file) {
  static const char mark[] = "{prevResult}";
  static char text[TEXT_BYTES], output[TEXT_BYTES];
  int file = open(stdin_file, O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("Cannot open %s: %s", stdin_file, strerror(errno));
  size_t length = read_text(file, text), output_length = read_text(slot->output, output);
  close(file);
  const char *at = strstr(text, mark);
  empty(slot->input);
  if (at == NULL) {
    append(slot->input, text, length);
  } else {
    const char *rest = at + sizeof mark - 1;
    append(slot->input, text, (size_t)(at - text));
    append(slot->input, output, output_length);
    append(slot->input, rest, (size_t)(text + length - rest));
  }
  lseek(slot->input, 0, SEEK_SET);
}

static void start_step(struct slot *slot, struct step *step) {
  static char values[MAX_FIELDS][VALUE_BYTES], stdin_file[VALUE_BYTES];
  char *environment[MAX_FIELDS + 1], *arguments[] = {step->path, NULL};
  int count = 0, is_first = slot->sample.step_count == 0;
  for (; step->variables[count] != NULL; count++) {
    substitute(values[count], step->variables[count], slot->sample.number);
    insert_text(values[count]);
    environment[count] = values[count];
  }
  environment[count] = NULL;
  substitute(stdin_file, step->stdin_file, slot->sample.number);
  if (!is_first) fill_input(slot, stdin_file);
  empty(slot->output);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (is_first) posix_spawn_file_actions_addopen(&actions, 0, stdin_file, O_RDONLY, 0);
  else posix_spawn_file_actions_adddup2(&actions, slot->input, 0);
  posix_spawn_file_actions_adddup2(&actions, slot->output, 1);
  posix_spawn_file_actions_adddup2(&actions, slot->output, 2);
  slot->step_start_ns = now_ns();
  int error = posix_spawn(&slot->pid, step->path, &actions, NULL, arguments, environment);
  if (error != 0) fail("Cannot start %s: %s", step->path, strerror(error));
  posix_spawn_file_actions_destroy(&actions);
}

static int new_file(const char *name) {
  int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0) fail("memfd_create: %s", strerror(errno));
  return file;
}

/*
 * A slot's files are made for its first run: each process that is spawned gets all open files, and closes them again,
 * in time that is measured.
 */
static void open_files(struct slot *slot) {
  if (slot->output != 0) return;
  slot->input = new_file("input");
  slot->output = new_file("output");
}

static void start_run(struct slot *slot, struct subject *subject, long number) {
  open_files(slot);
  slot->sample = (struct sample){.batch = batch_count, .number = number};
  slot->start_ns = now_ns();
  start_step(slot, &subject->steps[0]);
}

static void show_output(const struct slot *slot) {
  static char bytes[TEXT_BYTES];
  fwrite(bytes, 1, read_text(slot->output, bytes), stderr);
}

/* Returns the output of the slot's step, in one line. */
static char *copy_output(const struct slot *slot) {
  char *text = grow(NULL, TEXT_BYTES + 1);
  read_text(slot->output, text);
  for (char *at = text; *at != 0; at++)
    if (*at == '\n' || *at == '\r') *at = ' ';
  return grow(text, strlen(text) + 1);
}

static void record(const struct sample *sample) {
  if (sample_count == sample_room) {
    sample_room = sample_room * 2 + 1024;
    samples = grow(samples, sample_room * sizeof *samples);
  }
  samples[sample_count++] = *sample;
}

/* Waits for any step of the batch to end, and goes on to the next one of its run. Gives whether the run is over. */
static int finish_step(struct subject *subject, int at_once) {
  struct rusage usage;
  int status;
  pid_t pid = wait4(-1, &status, 0, &usage);
  long long end_ns = now_ns();
  struct slot *slot = slots;
  while (slot < slots + at_once && slot->pid != pid) slot++;
  if (pid < 0 || slot == slots + at_once) fail("Lost a child: %s", strerror(errno));
  struct sample *sample = &slot->sample;
  struct step *step = &subject->steps[sample->step_count];
  sample->step_ns[sample->step_count++] = end_ns - slot->step_start_ns;
  int is_last = sample->step_count == subject->step_count, may_fail = subject->status == ANY_STATUS;
  sample->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  int has_failed = sample->exit_status != (is_last && !may_fail ? subject->status : 0);
  if (has_failed && !may_fail) {
    show_output(slot);
    fail("Run %ld of %s ended with status %#x", sample->number, step->path, status);
  }
  sample->user_us += usage.ru_utime.tv_sec * 1000000LL + usage.ru_utime.tv_usec;
  sample->system_us += usage.ru_stime.tv_sec * 1000000LL + usage.ru_stime.tv_usec;
  if (!is_last && !has_failed) {
    start_step(slot, step + 1);
    return 0;
  }
  if (may_fail) sample->text = copy_output(slot);
  slot->pid = 0;
  sample->wall_ns = end_ns - slot->start_ns;
  record(sample);
  return 1;
}

static void run_batch(struct subject *subject, int at_once, long first, long count, long limit_ms) {
  long started = 0, running = 0;
  long long start_ns = now_ns();
  while (started < count || running > 0) {
    if (limit_ms > 0 && now_ns() - start_ns > limit_ms * 1000000LL) count = started;
    while (started < count && running < at_once) {
      struct slot *slot = slots;
      while (slot->pid != 0) slot++;
      start_run(slot, subject, first + started++);
      running++;
    }
    if (running > 0) running -= finish_step(subject, at_once);
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

static void add_step(struct subject *subject, char **fields, int count) {
  if (subject->step_count == MAX_STEPS) fail("More than %d steps", MAX_STEPS);
  struct step *step = &subject->steps[subject->step_count++];
  step->path = strdup(fields[1]);
  step->stdin_file = strdup(fields[2]);
  for (int i = 3; i < count; i++) step->variables[i - 3] = strdup(fields[i]);
}

static void obey(char *line) {
  char *fields[MAX_FIELDS];
  int count = split(line, fields);
  struct subject *last = subject_count == 0 ? NULL : &subjects[subject_count - 1];
  if (count >= 3 && strcmp(fields[0], "subject") == 0) {
    if (subject_count == MAX_SUBJECTS) fail("More than %d subjects", MAX_SUBJECTS);
    add_step(&subjects[subject_count++], fields, count);
  } else if (count >= 3 && last != NULL && strcmp(fields[0], "then") == 0) {
    add_step(last, fields, count);
  } else if (count == 2 && last != NULL && strcmp(fields[0], "exits") == 0) {
    last->status = strcmp(fields[1], "any") == 0 ? ANY_STATUS : atoi(fields[1]);
  } else if (count == 6 && strcmp(fields[0], "batch") == 0) {
    int subject = atoi(fields[1]), at_once = atoi(fields[2]);
    if (subject < 0 || subject >= subject_count || at_once < 1 || at_once > MAX_AT_ONCE) fail("Bad batch");
    run_batch(&subjects[subject], at_once, atol(fields[3]), atol(fields[4]), atol(fields[5]));
  } else {
    fail("Cannot read the plan at \"%s\"", fields[0]);
  }
}

int main(void) {
  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) obey(line);
  for (size_t i = 0; i < sample_count; i++) {
    struct sample *sample = &samples[i];
    printf("run %d %ld %lld %lld %lld", sample->batch, sample->number, sample->wall_ns, sample->user_us,
           sample->system_us);
    for (int step = 0; step < sample->step_count; step++) printf(" %lld", sample->step_ns[step]);
    putchar('\n');
    if (sample->text != NULL) printf("answer %d %d %s\n", sample->batch, sample->exit_status, sample->text);
  }
  for (int i = 0; i < batch_count; i++) printf("batch %d %lld\n", i, batch_ns[i]);
  return 0;
}
