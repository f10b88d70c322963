/** The agent's container: the calls that its seccomp profile forbids, and a read-only /proc/sys. */
import { readFileSync } from "node:fs";
import { beforeAll, expect, it } from "vitest";
import { runCommand } from "../lab/command.ts";
import { ENTRY, MACVLAN, makeChainNode } from "../lab/netns/coordinator.ts";
import { compileSeccomp } from "../lab/seccomp.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const directory = temporaryDirectory("berth-seccomp-");
let wrapper: readonly string[];

beforeAll(() => {
  wrapper = compileSeccomp("berth-agent.json", directory);
});

it.each([
  ["another mount namespace", ["unshare", "--mount", "true"]],
  ["another user namespace", ["unshare", "--user", "true"]],
  ["a mount namespace that is there", ["nsenter", "--mount=/proc/self/ns/mnt", "true"]],
  ["a mount", ["mount", "-t", "tmpfs", "none", "/mnt"]],
  ["another root", ["chroot", "/", "true"]],
  ["a device", ["mknod", "/dev/null", "c", "1", "3"]],
])("refuses %s", async (_, argv) => {
  const { exitCode, stderr } = await runCommand([...wrapper, ...argv]);
  expect([exitCode === 0, stderr]).toEqual([false, expect.stringMatching(/not permitted|denied/i)]);
});

it("permits another network namespace", async () => {
  expect(await runCommand([...wrapper, "unshare", "--net", "true"])).toMatchObject({ exitCode: 0 });
});

it("lets the agent attach, check and detach pods with a coordinator", async () => {
  await using node = await makeChainNode("sc", { wrapper });
  const network = `sc${process.pid}`;
  await node.begin(network);
  expect(readFileSync(`/proc/${node.agent.pid}/status`, "utf8")).toMatch(/^Seccomp:\s+2$/m);
  await node.withPod("web", async (pod) => {
    await pod.attach(network);
    await pod.check(network);
    await pod.detach(network);
  });
});

it("names a read-only /proc/sys, and how to go round it, before the first pod fails", async () => {
  const container = 'mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec "$0" "$@"';
  const inContainer = ["unshare", "--mount", "--propagation", "slave", "sh", "-ec", container];
  await using node = await makeChainNode("ro", { wrapper: inContainer });
  const network = `ro${process.pid}`;
  await node.define(network, [MACVLAN, ENTRY]);
  const remedy = "read-only file system (EROFS); mount the node's /proc/sys/net, and set BERTH_SYSCTL_DIR to its path";
  expect((await node.agent.get("/v1/health")).problems.join()).toContain(remedy);
  await node.withPod("web", async (pod) => expect((await pod.call("add", network)).stderr).toContain(remedy));
});
