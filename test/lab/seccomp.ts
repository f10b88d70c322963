/**
 * Starts programs under a profile of deploy/seccomp, as a runtime starts containers: without a container.
 *
 *   const wrapper = compileSeccomp("berth-agent.json", directory);   // words before a command line
 *
 * Effects: a program in the directory, made by the C compiler, which knows the numbers of system calls.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";

/** The part of the OCI's runtime specification that the profile uses. */
interface Rule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  readonly errnoRet?: number;
  readonly args?: readonly { readonly index: number; readonly value: number; readonly op: string }[];
}

const PROLOGUE = `#include <stddef.h>
#include <stdio.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(n) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (n))
#define LOAD(place) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place)
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
static struct sock_filter filter[] = {
LOAD(offsetof(struct seccomp_data, nr)),
`;

const EPILOGUE = `};
int main(int argc, char **argv) {
  struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
  if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    perror("seccomp");
    return 125;
  }
  execvp(argv[1], argv + 1);
  perror(argv[1]);
  return 127;
}
`;

/** Returns the instructions for one system call: whether it is this one, and whether the argument fits. */
function formatCall(name: string, { action, errnoRet = 1, args: [argument] = [] }: Rule): string {
  const end = action === "SCMP_ACT_ALLOW" ? "ALLOW" : `REFUSE(${errnoRet})`;
  const lines: string[] = [];
  if (argument === undefined) lines.push(`UNLESS(SYS_${name}, 1)`, end);
  else {
    const isMasked = argument.op === "SCMP_CMP_MASKED_EQ";
    const mask = isMasked ? [`BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ${argument.value})`] : [];
    lines.push(
      `UNLESS(SYS_${name}, ${4 + mask.length})`,
      `LOAD(offsetof(struct seccomp_data, args[${argument.index}]))`,
    );
    lines.push(...mask, `UNLESS(${isMasked ? 0 : argument.value}, 1)`, end, "LOAD(offsetof(struct seccomp_data, nr))");
  }
  return `#ifdef SYS_${name}\n${lines.join(",\n")},\n#endif\n`;
}

/** Returns the words that go before a command line. */
export function compileSeccomp(profile: string, directory: string): string[] {
  const text = readFileSync(join(root, "deploy/seccomp", profile), "utf8");
  const { syscalls, defaultErrnoRet } = JSON.parse(text) as { syscalls: Rule[]; defaultErrnoRet: number };
  const rules = syscalls.flatMap((rule) => rule.names.map((name) => formatCall(name, rule)));
  const program = join(directory, "seccomp");
  const input = `${PROLOGUE}${rules.join("")}REFUSE(${defaultErrnoRet})\n${EPILOGUE}`;
  execFileSync("cc", ["-Wall", "-Werror", "-x", "c", "-o", program, "-"], { input });
  return [program];
}
