/*
 * The executable that the container runtime runs as berth, coordinator and ifacer: it forwards one CNI call to the
 * agent and returns the answer. It knows the framing of the protocol (CNI 1.1 §2) and docs/develop/shim-protocol.md;
 * the agent interprets the call. With the command of a netavark driver as its argument (Podman 5), it does the same
 * for netavark.
 *
 * environment, stdin ──▶ request ──▶ agent ──▶ answer ──▶ stdout, exit code
 *                             └─ DEL without a complete answer ──▶ spool, exit 0
 *
 * Stdout always receives CNI JSON: the shim's own, or an answer that it has checked.
 *
 * `berth --probe live|ready` asks for the agent's health instead, for a kubelet.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "http.h"
#include "json.h"
#include "shim-limits.h"
#include "reply.h"
#include "request.h"
#include "spool.h"

#define DEFAULT_SPOOL "/var/lib/berth/spool"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum verb_name { ADD, CHECK, DEL, GC, STATUS, VERSION, CREATE };

/* `limit_ms` limits reading stdin, and then the time from connecting to the complete answer. */
struct verb {
    const char *name;
    int64_t limit_ms;
    int64_t connect_wait_ms;
    enum code unanswered;
};

static const struct verb VERBS[] = {
    [ADD] = {"ADD", ADD_LIMIT_MS, CONNECT_WAIT_MS, TRY_AGAIN},
    [CHECK] = {"CHECK", CHECK_LIMIT_MS, CONNECT_WAIT_MS, TRY_AGAIN},
    [DEL] = {"DEL", DEL_LIMIT_MS, 0, INPUT_OUTPUT},
    [GC] = {"GC", GC_LIMIT_MS, CONNECT_WAIT_MS, TRY_AGAIN},
    [STATUS] = {"STATUS", STATUS_LIMIT_MS, 0, NOT_AVAILABLE},
    [VERSION] = {"VERSION", VERSION_LIMIT_MS, 0, DECODE},
    [CREATE] = {"CREATE", CREATE_LIMIT_MS, 0, TRY_AGAIN},
};

/* The commands of a netavark driver, and the verbs as which they are forwarded. CREATE is none of CNI's. */
static const struct {
    const char *command;
    enum verb_name verb;
} NETAVARK[] = {{"setup", ADD}, {"teardown", DEL}, {"create", CREATE}};

/*
 * The names of the executable. The last two are for hosts where another product's executables have the names before
 * them.
 */
static const struct {
    const char *name, *plugin;
} PLUGINS[] = {
    {"berth", "berth"},
    {"coordinator", "coordinator"},
    {"ifacer", "ifacer"},
    {"berth-coordinator", "coordinator"},
    {"berth-ifacer", "ifacer"},
};

/* A closed descriptor 0, 1 or 2 would be reused for the next file opened, and a reply written into that file. */
static void fill_standard_streams(void) {
    struct pollfd streams[] = {{.fd = STDIN_FILENO}, {.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};
    poll(streams, COUNT(streams), 0);
    for (size_t i = 0; i < COUNT(streams); i++)
        if (streams[i].revents & POLLNVAL) open("/dev/null", O_RDONLY);
}

static const struct verb *find_verb(const char *command) {
    for (size_t i = 0; i < CREATE; i++)
        if (strcmp(VERBS[i].name, command) == 0) return &VERBS[i];
    return NULL;
}

static const char *require_plugin(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    for (size_t i = 0; i < COUNT(PLUGINS); i++)
        if (strcmp(PLUGINS[i].name, name) == 0) return PLUGINS[i].plugin;
    fail(ENVIRONMENT, "The executable's name is \"", name, "\"; want berth, coordinator, ifacer, berth-coordinator or berth-ifacer", NULL);
}

enum body { EMPTY, RESULT, ERROR, REFUSED };

/* A body with `code` and `msg` is an error, which every CNI caller must be able to decode. */
static enum body classify_body(const char *body, size_t length) {
    struct json_member members[] = {{.name = "code"}, {.name = "msg"}, {.name = "cniVersion"}, {.name = "details"}};
    const struct json_member *code = &members[0], *msg = &members[1];
    if (length == 0) return EMPTY;
    if (!json_read_object(body, length, members, COUNT(members))) return REFUSED;
    if (code->kind == JSON_ABSENT || msg->kind == JSON_ABSENT) return RESULT;
    for (size_t i = 0; i < COUNT(members); i++) {
        enum json_kind wanted = &members[i] == code ? JSON_NUMBER : JSON_STRING;
        if (members[i].count > 1 || (members[i].count == 1 && members[i].kind != wanted)) return REFUSED;
    }
    if (code->length > 9) return REFUSED;
    for (size_t i = 0; i < code->length; i++)
        if (code->value[i] < '0' || code->value[i] > '9') return REFUSED;
    return ERROR;
}

/* Exits if the answer can be passed to the caller; otherwise returns the agent's failure. */
static const char *pass_on(const struct verb *verb, const struct http_answer *answer) {
    enum body body = classify_body(answer->body, answer->body_length);
    if (answer->status >= 400 && answer->status <= 599) {
        bool is_kept = is_for_netavark() && verb == &VERBS[DEL] && answer->status == 503; /* nothing calls a second time */
        if (body == ERROR && is_kept) return "could not process it now";
        if (body == ERROR) reply_error(answer->body, answer->body_length);
        return "refused the request without CNI error JSON";
    }
    if (answer->status != 200) return "answered with a status that is neither 200 nor an error";
    if (body == ERROR) return "sent an error with status 200";
    if (body == REFUSED) return "sent a body that is not a JSON object";
    if (body == EMPTY && verb == &VERBS[ADD]) return "answered ADD without a result";
    if (answer->notice != NULL) print_line(answer->notice, NULL);
    reply_body(answer->body, answer->body_length, 0);
}

/* Exits: either the DEL is safely recorded in the spool, or the runtime is told that it is not. */
__attribute__((noreturn)) static void spool(const struct http_request *request, const char *reason) {
    const char *directory = variable_or("BERTH_SPOOL", DEFAULT_SPOOL);
    int error = spool_write(directory, request->bytes, request->length);
    if (error != 0)
        fail(INPUT_OUTPUT, "Cannot record this DEL in directory \"", directory, "\": ", strerror(error), "; the agent at \"",
             request->socket_path, "\" could not process it either: it ", reason, NULL);
    print_line("DEL recorded in ", directory, ": agent at ", request->socket_path, " ", reason, NULL);
    _exit(0);
}

__attribute__((noreturn)) static void forward(const struct verb *verb, const char *plugin) {
    struct http_request request = {.socket_path = socket_path(), .connect_ms = verb->connect_wait_ms};
    request.bytes = build_request(plugin, verb == &VERBS[DEL], &request.length);
    request.answer_ms = milliseconds_of("BERTH_REQUEST_LIMIT", verb->limit_ms);
    if (request.connect_ms > 0) request.connect_ms = milliseconds_of("BERTH_CONNECT_WAIT", request.connect_ms);
    struct http_answer answer;
    const char *reason = http_exchange(&request, &answer);
    if (reason == NULL) reason = pass_on(verb, &answer);
    if (verb == &VERBS[DEL]) spool(&request, reason);
    fail(verb->unanswered, "Agent at \"", request.socket_path, "\" ", reason, "; try ", is_for_netavark() ? "it" : verb->name, " again later", NULL);
}

/* Netavark gives the namespace as the second argument, and the rest on stdin. */
__attribute__((noreturn)) static void serve_netavark(const struct verb *verb, const char *netns) {
    if (netns == NULL && verb != &VERBS[CREATE]) fail(ENVIRONMENT, "The path of the network namespace is missing", NULL);
    take_arguments(verb->name, netns);
    read_config(verb->limit_ms, verb == &VERBS[DEL]);
    forward(verb, "netavark");
}

/* Returns if the arguments are no command of a netavark driver. */
static void try_netavark(int argc, char **argv) {
    const char *command = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < COUNT(NETAVARK); i++) {
        if (strcmp(NETAVARK[i].command, command) != 0) continue;
        reply_as_netavark();
        serve_netavark(&VERBS[NETAVARK[i].verb], argc > 2 ? argv[2] : NULL);
    }
    if (strcmp(command, "info") == 0) reply_driver_info();
}

/* Exit codes as those of berthctl. */
enum probe_result { AS_WANTED = 0, NOT_READY = 1, WRONG_USAGE = 2, NO_ANSWER = 3 };

static enum probe_result probe(const char *what) {
    static const char GET[] = "GET /v1/health HTTP/1.1\r\nHost: berth\r\n\r\n";
    bool wants_ready = strcmp(what, "ready") == 0;
    if (!wants_ready && strcmp(what, "live") != 0) {
        print_line("Want --probe live or ready", NULL);
        return WRONG_USAGE;
    }
    struct http_request request = {.socket_path = socket_path(), .bytes = GET, .length = sizeof GET - 1};
    request.answer_ms = milliseconds_of("BERTH_REQUEST_LIMIT", PROBE_LIMIT_MS);
    struct http_answer answer;
    enum probe_result result = NO_ANSWER;
    const char *reason = http_exchange(&request, &answer);
    if (reason == NULL) {
        if (answer.status == 200 || (answer.status == 503 && !wants_ready)) return AS_WANTED;
        if (answer.status == 503) result = NOT_READY;
        reason = "is not ready; see berthctl check";
    }
    print_line("Agent at ", request.socket_path, " ", reason, NULL);
    return result;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    fill_standard_streams();
    if (argc > 1 && strcmp(argv[1], "--probe") == 0) return (int)probe(argc > 2 ? argv[2] : "");
    try_netavark(argc, argv);
    const char *command = variable_or("CNI_COMMAND", NULL);
    if (command == NULL) {
        print_about();
        return 0;
    }
    const struct verb *verb = find_verb(command);
    read_config(verb == NULL ? VERSION_LIMIT_MS : verb->limit_ms, verb == &VERBS[DEL]);
    const char *plugin = require_plugin(argc > 0 ? argv[0] : "");
    if (verb == NULL)
        fail(ENVIRONMENT, "Variable CNI_COMMAND is \"", command, "\"; want ADD, DEL, CHECK, GC, STATUS or VERSION", NULL);
    if (verb == &VERBS[VERSION]) reply_versions();
    forward(verb, plugin);
}
