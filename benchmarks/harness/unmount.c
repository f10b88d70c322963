/* Deletes the network namespace CNI_NETNS below /run/netns, as a runtime does after the DEL of its pod's last NIC. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

int main(void) {
  const char *path = getenv("CNI_NETNS");
  if (path != NULL && umount2(path, MNT_DETACH) == 0 && unlink(path) == 0) return 0;
  perror(path);
  return 1;
}
