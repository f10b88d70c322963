/** How the kernel treats the threads of a built agent. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { startAgent } from "../lab/agent.ts";

/** proc_pid_stat(5), counted from the field behind the name, which is the third. */
const POLICY = 41 - 3;
const SCHED_OTHER = "0";
const SCHED_BATCH = "3";

/** Name and policy of each thread. */
function readPolicies(pid: number): [name: string, policy: string | undefined][] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
    const end = stat.lastIndexOf(")");
    return [stat.slice(stat.indexOf("(") + 1, end), stat.slice(end + 2).split(" ")[POLICY]];
  });
}

it("V8's threads of an agent do not preempt those that answer when they wake", async () => {
  const agent = await startAgent({ config: {} });
  try {
    const threads = readPolicies(agent.pid);
    const [compilers, others] = [
      threads.filter(([name]) => name === "node-V8Worker"),
      threads.filter(([name]) => name !== "node-V8Worker"),
    ];
    expect(compilers.length).toBeGreaterThan(0);
    expect(new Set(compilers.map(([, policy]) => policy))).toEqual(new Set([SCHED_BATCH]));
    expect(others.map(([name]) => name)).toEqual(expect.arrayContaining(["node-MainThread", "registry"]));
    expect(new Set(others.map(([, policy]) => policy))).toEqual(new Set([SCHED_OTHER]));
  } finally {
    await agent.delete();
  }
});
