/*
 * The first process of a pod's sandbox, and of a node of the lab: it waits, buries the children that others leave to
 * it, and ends when told to. Built by scripts/setup/c-programs.mjs. Effects: none.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGCHLD);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    for (;;) {
        int signal = 0;
        if (sigwait(&wanted, &signal) == 0 && signal != SIGCHLD) return 0;
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}
