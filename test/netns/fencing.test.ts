/** Orphans' NICs on the real kernel: the packets that a rival receives of them before and after they are fenced. */

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fenceOrphan, KERNEL_NICS, type NicAccess } from "../../host/agent/fences/orphan-nics.ts";
import { findNetns } from "../../host/agent/netns/find-netns.ts";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import type { KubeEvent } from "../../host/kubernetes/events.ts";
import { UNKNOWN_CONTAINER } from "../../host/registry/journal.ts";
import type { Allocation } from "../../host/registry/registry.ts";
import type { Workload } from "../../host/resources/member.ts";
import { recordLog } from "../world/recorded-log.ts";
import { ip } from "../world/values.ts";
import { detect, type Lab, makeLab, type Pod, type PodOptions } from "./detection-lab.ts";

let lab: Lab;
beforeAll(() => {
  lab = makeLab("bkfn");
});
afterAll(() => lab[Symbol.dispose]());

const { readCookie, fenceNics } = KERNEL_NICS;
const V4 = "10.7.0.10";
const V6 = "fd00:7::10";
const addressesOn = (pod: Pod): string[] =>
  JSON.parse(pod.ip("-j addr show scope global")).flatMap(({ addr_info }: { addr_info: { local: string }[] }) =>
    addr_info.flatMap(({ local }) => local ?? []),
  );
const downLinks = (pod: Pod): string[] =>
  JSON.parse(pod.ip("-j link show"))
    .filter(({ flags }: { flags: string[] }) => !flags.includes("UP"))
    .map(({ ifname }: { ifname: string }) => ifname)
    .sort();

function orphan(options: PodOptions = {}): Pod {
  const pod = lab.addPod({ ipv6: true, addresses: [`${V4}/24`, `${V6}/64`], ...options });
  pod.ip("link set lo up");
  return pod;
}
const fence = (pod: Pod, changes: Partial<Parameters<typeof fenceNics>[0]> = {}) => {
  const { netnsPath: netns } = pod.link;
  return fenceNics({ netns, netnsCookie: readCookie(netns), ips: [ip(V4), ip(V6)], hasMachine: false, ...changes });
};

it.each(["veth", "macvlan"] as const)(
  "a NIC of kind %s answers before and is silent after, twice is once",
  async (kind) => {
    const pod = orphan({ kind });
    const asker = lab.addPod({ ipv6: true });
    expect((await detect(asker, [V4])).conflict).toBeDefined();
    expect(fence(pod)).toEqual(["eth0"]);
    expect([addressesOn(pod), downLinks(pod)]).toEqual([[], ["eth0"]]);
    expect((await detect(asker, [V4, V6])).conflict).toBeUndefined();
    expect(fence(pod)).toEqual([]);
    pod.ip("link del eth0");
    expect(fence(pod)).toEqual([]);
  },
);

it("one family alone: the other's address goes with the link, and other NICs stay as they are", () => {
  const pod = orphan();
  pod.ip("link add net1 type bridge");
  pod.ip("addr add 10.8.0.1/24 dev net1");
  pod.ip("link set net1 up");
  expect(fence(pod, { ips: [ip(V4)] })).toEqual(["eth0"]);
  expect(addressesOn(pod)).toEqual(["10.8.0.1"]);
  expect(downLinks(pod)).toEqual(["eth0"]);
});

it("an address that was moved to another link of the pod is found there", () => {
  const pod = orphan({ addresses: [] });
  pod.ip("link add k6t type bridge");
  pod.ip(`addr add ${V4}/24 dev k6t`);
  pod.ip("link set k6t up");
  expect(fence(pod)).toEqual(["k6t"]);
  expect([addressesOn(pod), downLinks(pod)]).toEqual([[], ["k6t"]]);
});

it("a machine has the address inside itself: all links of its pod go down", () => {
  const pod = orphan({ addresses: [] });
  pod.ip("link add k6t type bridge");
  pod.ip("link set eth0 master k6t");
  pod.ip("link set k6t up");
  expect(fence(pod)).toEqual([]);
  expect([...(fence(pod, { hasMachine: true }) ?? [])].sort()).toEqual(["eth0", "k6t"]);
  expect(downLinks(pod)).toEqual(["eth0", "k6t"]);
});

it("a path that leads into no pod is left alone: gone, the node's own, a file, and a number used again", () => {
  const before = readdirSync("/proc/self/fd").length;
  const own = { ips: [ip("127.0.0.1")], hasMachine: true };
  expect(fenceNics({ netns: "/run/netns/bkfn-none", ...own })).toBeUndefined();
  expect(fenceNics({ netns: "/proc/self/ns/net", ...own })).toBeUndefined();
  expect(fenceNics({ netns: "/proc/self/status", ...own })).toBeUndefined();
  const pod = orphan();
  const sleeper = Number(pod.exec("sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!"));
  try {
    const other = { netns: `/proc/${sleeper}/ns/net`, netnsCookie: 1n, ips: [ip(V4)], hasMachine: true };
    expect(fence(pod, other)).toBeUndefined();
    expect(fence(pod, { ...other, netnsCookie: undefined, ips: [ip("10.7.0.99")] })).toEqual([]);
    expect([addressesOn(pod), downLinks(pod)]).toEqual([[V4, V6], []]);
    expect(fence(pod, { netns: other.netns })).toEqual(["eth0"]);
  } finally {
    process.kill(sleeper);
  }
  expect(readdirSync("/proc/self/fd").length).toBe(before);
});

it("a namespace made again at the path is another one: it is left alone, and the row's is gone", async () => {
  const pod = orphan();
  const { netnsPath: netns } = pod.link;
  // No other test's namespace has it.
  const own = { netns, netnsCookie: 2n ** 62n, ifName: "eth0", ip: ip(V4) };
  expect(await KERNEL_NICS.readNetnsStatus(own)).toBe("gone");
  expect(fence(pod, { ...own, hasMachine: true })).toBeUndefined();
  expect([addressesOn(pod), downLinks(pod)]).toEqual([[V4, V6], []]);
});

it("a namespace whose process has ended is found at its other path", async () => {
  const pod = orphan();
  const netnsCookie = readCookie(pod.link.netnsPath);
  const sought = { netns: "/proc/4194303/ns/net", ifName: "eth0", ip: ip(V4) };
  expect(await KERNEL_NICS.readNetnsStatus({ ...sought, netnsCookie })).toBe("inUse");
  expect(await KERNEL_NICS.readNetnsStatus({ ...sought, netnsCookie: 1n })).toBe("gone");
  expect(await KERNEL_NICS.readNetnsStatus(sought)).toBe("unknown");
});

it.each([
  ["renamed", ["link set eth0 down", "link set eth0 name old", "link set old up"]],
  ["moved", ["link add br0 type bridge", `addr del ${V4}/24 dev eth0`, `addr add ${V4}/24 dev br0`]],
])("a NIC whose address is %s has it", async (_, lines) => {
  const pod = orphan();
  for (const line of lines) pod.ip(line);
  const row = { netns: pod.link.netnsPath, ifName: "eth0", ip: ip(V4) };
  expect(await KERNEL_NICS.readNetnsStatus({ ...row, netnsCookie: readCookie(row.netns) })).toBe("inUse");
  expect(await KERNEL_NICS.readNetnsStatus(row)).toBe("inUse");
});

it("an address that comes up in a fenced namespace is not answered for", async () => {
  const [late4, late6] = ["10.7.0.77", "fd00:7::77"];
  const pod = orphan({ addresses: [] });
  const asker = lab.addPod({ ipv6: true });
  expect(fence(pod)).toEqual([]);
  pod.ip(`addr add ${late4}/24 dev eth0`);
  expect(() => pod.ip(`addr add ${late6}/64 dev eth0 nodad`)).toThrow();
  expect((await detect(asker, [late4, late6])).conflict).toBeUndefined();
  // Not so in one that was only released.
  const other = orphan({ addresses: [] });
  expect(fence(other, { isOrphan: false })).toEqual([]);
  other.ip(`addr add ${late4}/24 dev eth0`);
  expect((await detect(asker, [late4])).conflict).toBeDefined();
});

describe("an orphan", () => {
  const SET: Workload = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set-uid", member: "db-0" };
  const MACHINE: Workload = { ...SET, kind: "VirtualMachine" };

  function row(netns: string | undefined, workload = SET): Allocation {
    const netnsCookie = netns === undefined ? undefined : (readCookie(netns) ?? 1n);
    return {
      ...{ space: "", ip: ip(V4), prefixLength: 24, pool: "blue", state: "Bound", owner: "u1", ifName: "eth0" },
      ...{ netns, netnsCookie },
      ...{ containerId: "c1", network: "lan", namespace: "shop", pod: "db-0", workload, sinceMs: 0, version: 1 },
    };
  }

  async function end(of: Allocation, isEnabled = true, nics: NicAccess = KERNEL_NICS) {
    const events: KubeEvent[] = [];
    const detached: string[] = [];
    const { log, lines } = recordLog();
    const tools = {
      ...{ nics, knownNetns: async () => [], remember: () => {} },
      ...{ node: "n1", log, isEnabled: () => isEnabled, emit: (event: KubeEvent) => events.push(event) },
      detach: async ({ containerId }: Allocation) => void detached.push(containerId),
    };
    return { isOff: await fenceOrphan(tools, of), events, detached, lines };
  }

  it("loses its address and its coordinator's work, which the log and the set's events report", async () => {
    const pod = orphan();
    const { isOff, events, detached, lines } = await end(row(pod.link.netnsPath));
    expect([isOff, detached, addressesOn(pod), downLinks(pod)]).toEqual([true, ["c1"], [], ["eth0"]]);
    const text = `Pod shop/db-0 (UID u1) is deleted but its sandbox still runs on node "n1"; removed address ${V4} from it and set "eth0" down`;
    expect(events).toMatchObject([
      { reason: "OrphanFenced", note: text, regarding: { kind: "StatefulSet", name: "db", uid: "set-uid" } },
    ]);
    expect(lines).toEqual([expect.stringContaining(text)]);
    const again = await end(row(pod.link.netnsPath));
    expect([again.isOff, again.events, again.lines]).toEqual([true, [], []]);
  });

  it("keeps its address when fencing is disabled, until the NIC has lost it; of a machine that cannot be seen", async () => {
    const pod = orphan();
    const { netnsPath } = pod.link;
    expect(await end(row(netnsPath), false)).toMatchObject({ isOff: false, detached: [], events: [] });
    expect(addressesOn(pod)).toContain(V4);
    pod.ip(`addr del ${V4}/24 dev eth0`);
    expect((await end(row(netnsPath), false)).isOff).toBe(true);
    expect((await end(row(netnsPath, MACHINE), false)).isOff).toBe(false);
    expect((await end(row(netnsPath, MACHINE))).isOff).toBe(true);
    expect(downLinks(pod)).toEqual(["eth0"]);
  });

  it("is off when its namespace is gone, and in doubt when that cannot be seen", async () => {
    expect((await end(row("/run/netns/bkfn-none"), false)).isOff).toBe(true);
    expect((await end(row("/nowhere/netns/bkfn-none"))).isOff).toBe(false);
    expect((await end(row(undefined))).isOff).toBe(false);
  });

  /** The runtime's record of an ADD. */
  function record(directory: string, { netns, mac, uid = "u1" }: { netns: string; mac: string; uid?: string }): void {
    const interfaces = [{ name: "eth0", mac, sandbox: netns }];
    const result = { cniVersion: "1.0.0", interfaces, ips: [], routes: [], dns: {} };
    const cached = { kind: "cniCacheV1", containerId: "c9", ifName: "eth0", networkName: "lan", netns, result };
    const cniArgs = [["K8S_POD_UID", uid]];
    writeFileSync(join(directory, `lan-${uid}-eth0`), JSON.stringify({ ...cached, cniArgs }));
  }

  function withRecords(work: (directory: string, nics: NicAccess) => Promise<void>): Promise<void> {
    const directory = mkdtempSync(join(tmpdir(), "berth-results-"));
    const nics: NicAccess = { ...KERNEL_NICS, findNetns: (nic, known) => findNetns(nic, known, [directory]) };
    return work(directory, nics).finally(() => rmSync(directory, { recursive: true }));
  }

  const adopted = { ...row(undefined), containerId: UNKNOWN_CONTAINER };

  it("is found by the runtime's record when the journal was lost", () =>
    withRecords(async (directory, nics) => {
      const pod = orphan();
      const { netnsPath: netns, mac } = pod.link;
      record(directory, { netns, mac });
      // Of an unknown container the registry would find all that it took in.
      expect(await end(adopted, true, nics)).toMatchObject({ isOff: true, detached: [] });
      expect([addressesOn(pod), downLinks(pod)]).toEqual([[], ["eth0"]]);
    }));

  it("is found by its pair with the node", async () => {
    const pod = orphan();
    const { pod: end_ } = nameVeth("c1");
    pod.ip(`link add ${end_.name} address ${end_.mac} type bridge`);
    const { netnsPath: netns } = pod.link;
    const unproven = { ...row(netns), netnsCookie: undefined };
    expect((await end({ ...unproven, containerId: "c2" })).isOff).toBe(false);
    expect(addressesOn(pod)).toContain(V4);
    expect((await end(unproven)).isOff).toBe(true);
    expect(addressesOn(pod)).toEqual([]);
  });

  it("is not taken for a bystander that has its address, which is a candidate", () =>
    withRecords(async (directory, nics) => {
      const bystander = orphan();
      const { netnsPath: netns, mac } = bystander.link;
      const outcome = async () => [
        (await end(adopted, true, nics)).isOff,
        addressesOn(bystander),
        downLinks(bystander),
      ];
      const untouched = [false, [V4, V6], []];
      expect(await outcome()).toEqual(untouched);
      const found = nics.findNetns(adopted, []);
      const candidates = found.kind === "unknown" ? found.candidates : [];
      expect(candidates).toContain(netns);
      expect(nics.findNetns(adopted, candidates)).toEqual({ kind: "absent" });
      // Its path in the record of the orphan is used again.
      record(directory, { netns, mac: "02:00:00:00:00:99" });
      expect(await outcome()).toEqual(untouched);
      record(directory, { netns, mac, uid: "u2" });
      expect(await outcome()).toEqual(untouched);
    }));
});
