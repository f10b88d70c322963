/** A pod's NIC that goes without a DEL, alone or with the pod's namespace. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { PluginOutcome } from "../lab/cnitool.ts";
import { type Segment, withSegment } from "../lab/netns/segment.ts";
import type { Netns } from "../lab/netns.ts";
import { eventually, SOON_MS } from "../lab/waiting.ts";
import { ENTRY } from "./coordinator-scene.ts";

const vendor = { enableIPv6: false, garbageCollection: { grace: "1s" } };
const requireRun = async (outcome: Promise<PluginOutcome>): Promise<PluginOutcome> => {
  expect(await outcome).toMatchObject({ exitCode: 0 });
  return outcome;
};
const isUnused = (usage: object): boolean => Object.keys(usage).length === 0;
const untilMissing = ({ agent }: Segment, count: number) =>
  expect
    .poll(async () => (await agent.request("/metrics")).body, { timeout: SOON_MS })
    .toContain(`berth_missing_nics ${count}\n`);

/** A process keeps the namespace, which no path in a folder leads to any more. */
async function unmount(pod: Netns): Promise<AsyncDisposable> {
  const [file = "", ...args] = pod.enter(["sleep", "1000"]);
  const keeper = spawn(file, args);
  await once(keeper, "spawn");
  const isInside = () => readlinkSync(`/proc/${keeper.pid}/ns/net`) !== readlinkSync("/proc/self/ns/net");
  await eventually(async () => isInside(), Boolean);
  await pod.delete();
  return {
    [Symbol.asyncDispose]: async () => {
      if (keeper.signalCode !== null) return;
      const ended = once(keeper, "exit");
      keeper.kill();
      await ended;
    },
  };
}

it.each([
  ["macvlan, with its parent", "macvlan", {}],
  ["bridge, with its end on the node", "bridge", { bridge: "br9" }],
])("is named in the log and counted within five seconds, until its pod is deleted: %s", (_what, type, keys) =>
  withSegment({}, async (segment) => {
    await segment.setDetection({ detectIPConflict: false });
    const pods = [await segment.pod(), await segment.pod()];
    const under = new Set<number>();
    for (const pod of pods) {
      await requireRun(segment.run(type, "ADD", pod, { conf: { ...keys, type } }));
      const [nic] = await pod.ipJson<{ link_index: number }>("link show dev eth0");
      under.add(nic?.link_index ?? 0);
    }
    await sleep(2_000); // the search at the start of the agent is over
    for (const { ifindex, ifname } of await segment.node.ipJson<{ ifindex: number; ifname: string }>("link"))
      if (under.has(ifindex)) await segment.node.ip(`link del ${ifname}`);
    await untilMissing(segment, 2);
    expect(segment.agent.stderr().match(/NICs of running pods are gone.* eth0 of shop\/.*Delete these/g)).toHaveLength(
      1,
    );
    for (const pod of pods) await requireRun(segment.run(type, "DEL", pod, { conf: { ...keys, type } }));
    await untilMissing(segment, 0);
  }),
);

it("with its namespace gives its address back, but not while a process keeps the namespace", () =>
  withSegment({ vendor }, async (segment) => {
    const [gone, kept] = [await segment.pod(), await segment.pod()];
    const addresses = [await segment.add(gone), await segment.add(kept)].flat();
    expect(await segment.usage()).toEqual({ Bound: addresses });
    await using process = await unmount(kept);
    await gone.delete();
    const isOne = ({ Bound = [] }: Record<string, string[]>): boolean => Bound.length === 1;
    await eventually(() => segment.usage(), isOne);
    await sleep(3_000);
    expect(await segment.usage()).toMatchObject({ Bound: [addresses[1]] });
    await process[Symbol.asyncDispose]();
    expect(await eventually(() => segment.usage(), isUnused)).toEqual({});
  }));

it("takes the pair with it in a DEL of a network that the agent does not know", () =>
  withSegment({ vendor }, async (segment) => {
    const pod = await segment.pod();
    const { stdout: prevResult } = await requireRun(segment.call("ADD", pod));
    const conf = { mode: "underlay", prevResult };
    await requireRun(segment.run("coordinator", "ADD", pod, { conf }));
    expect(await pod.ip("link")).toContain("veth0");
    await requireRun(segment.run("coordinator", "DEL", pod, { conf }));
    const links = await pod.ip("link");
    expect([links.includes("veth0"), links.includes("eth0")]).toEqual([false, true]);
    expect(await pod.ip("rule")).not.toContain("fwmark");
  }));

it("and has the MAC address of the next pod's is named, and the try after that has another address", () =>
  withSegment({ vendor, more: [{ ...ENTRY, podMACPrefix: "0a:1b" }] }, async (segment) => {
    await segment.setDetection({ detectIPConflict: false });
    const [left, next] = [await segment.pod(), await segment.pod()];
    await requireRun(segment.cnitool("add", left));
    await using _process = await unmount(left);
    await requireRun(segment.cnitool("del", left));
    expect(await eventually(() => segment.usage(), isUnused)).toEqual({});
    expect((await segment.cnitool("add", next)).stderr).toMatch(
      /MAC address 0a:1b:0a:42:00:01: another NIC on .*uplink.* has it, in .proc.\d+.ns.net. It has outlived its pod: delete it/,
    );
    await requireRun(segment.cnitool("del", next));
    await requireRun(segment.cnitool("add", next));
    expect(await segment.addressesOf(next)).toContain("10.66.0.2/29");
  }));
