/*
 * The least that can stand at the other end of the shim's socket: reads a request (docs/develop/shim-protocol.md), answers
 * 200 with a fixed IPAM result, closes. Shim + this = the floor of any agent. One thread, many connections at a time.
 * Usage: echo-agent SOCKET
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 1024, REQUEST_BYTES = 16384 };

struct connection {
  size_t length;
  char request[REQUEST_BYTES];
};

static const char body[] = "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"address\":\"10.0.0.2/24\"}],\"dns\":{}}";
static char answer[512];
static size_t answer_length;

/* Indexed by file descriptor. */
static struct connection connections[MAX_CONNECTIONS];

/* Whether the request holds its head and as many bytes after it as Content-Length says. */
static int is_complete(const struct connection *connection) {
  static const char name[] = "\r\nContent-Length:";
  const char *end = strstr(connection->request, "\r\n\r\n");
  if (end == NULL) return 0;
  const char *field = strcasestr(connection->request, name);
  size_t expected = field == NULL || field > end ? 0 : strtoul(field + sizeof name - 1, NULL, 10);
  return connection->length >= (size_t)(end + 4 - connection->request) + expected;
}

static void serve(int fd) {
  struct connection *connection = &connections[fd];
  ssize_t got = read(fd, connection->request + connection->length, REQUEST_BYTES - 1 - connection->length);
  if (got > 0) {
    connection->length += (size_t)got;
    connection->request[connection->length] = 0;
    if (!is_complete(connection)) return;
    if (write(fd, answer, answer_length) != (ssize_t)answer_length) perror("write");
  }
  close(fd);
}

static void watch(int poller, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  connections[fd].length = 0;
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) perror("epoll_ctl");
}

static void serve_all(int listener) {
  int poller = epoll_create1(0);
  watch(poller, listener);
  for (;;) {
    struct epoll_event events[64];
    int count = epoll_wait(poller, events, 64, -1);
    for (int i = 0; i < count; i++) {
      if (events[i].data.fd != listener) {
        serve(events[i].data.fd);
        continue;
      }
      int fd = accept(listener, NULL, NULL);
      if (fd >= MAX_CONNECTIONS) close(fd);
      else if (fd >= 0) watch(poller, fd);
    }
  }
}

int main(int count, char **words) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (count != 2 || strlen(words[1]) >= sizeof address.sun_path) return 2;
  strcpy(address.sun_path, words[1]);
  answer_length = (size_t)snprintf(answer, sizeof answer,
                                   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                                   "Connection: close\r\n\r\n%s",
                                   sizeof body - 1, body);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 512) != 0) return 1;
  serve_all(listener);
}
