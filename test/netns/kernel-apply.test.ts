/** Operations on the real kernel: all or nothing, whatever fails, and back again. */
import { readdirSync, readlinkSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ApplyError, applyOperations, undoOperations } from "../../host/kernel/apply.ts";
import { LinkRemover } from "../../host/kernel/link-remover.ts";
import { NetlinkError } from "../../host/kernel/netlink/error.ts";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { createFaultCounter, type Faults, openFaults } from "../../host/lib/fault.ts";
import { inverseOfAll, type Operation } from "../../host/plan/operation.ts";
import { PLACES, type Place } from "../../host/plan/state.ts";
import { formatOperation } from "../../host/plan/text.ts";
import { readSysctl } from "../world/sysctl.ts";
import { ip, mac, prefix } from "../world/values.ts";
import { operationsFor, VETH } from "./kernel-operations.ts";
import { dumpOf, ipIn, ipJson, makeScene, type Scene, unmountNetns } from "./kernel-scene.ts";

let scene: Scene;
let remover: LinkRemover;
let operations: Operation[];
let before: ReturnType<typeof dump>;

const dump = () => ({ pod: dumpOf(scene.names.pod), host: dumpOf(scene.names.host) });
const apply = (list: readonly Operation[], faults?: Faults) => applyOperations(list, scene, { remover, faults });

/** The error that it must fail with. */
async function failureOf(list: readonly Operation[], faults?: Faults): Promise<ApplyError> {
  const error = await apply(list, faults).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof ApplyError ? error : expect.unreachable(`no ApplyError but ${error}`);
}

beforeAll(() => {
  scene = makeScene("bka");
  remover = new LinkRemover(scene.host.path);
  const withPeer = "addr add 192.0.2.1 peer 192.0.2.2/31 dev spare0 scope link noprefixroute";
  ipIn(scene.names.pod, "addr add 10.99.0.1/24 dev spare0", withPeer, "link set spare0 up", "link set spare0 down");
  operations = operationsFor(scene);
  before = dump();
});

afterAll(async () => {
  await remover.close();
  scene[Symbol.dispose]();
});

afterEach(() => {
  expect(dump()).toEqual(before);
});

it("operations of all kinds are done, and undone by their inverses", async () => {
  const added = "add-veth and add-alt-name, whose undoing is the other two kinds";
  expect(new Set(operations.map(({ kind }) => kind)).size, added).toBe(14);
  await apply(operations);
  const after = dump();
  expect(after.pod).not.toEqual(before.pod);
  expect(after.host).not.toEqual(before.host);
  expect(await undoOperations(operations, scene, { remover })).toEqual([]);
});

it("a failure at every single operation leaves both namespaces as they were", async () => {
  for (const [index, operation] of operations.entries()) {
    const plan = { action: "fail", number: index + 1, point: "kernel.apply" } as const;
    const failure = await failureOf(operations, openFaults(plan, createFaultCounter()));
    expect(failure.operation).toBe(operation);
    expect(failure.leftovers).toEqual([]);
    expect(failure.message).toContain(`"${formatOperation(operation)}" failed: Effect ${index + 1} (kernel.apply)`);
    expect(dump(), formatOperation(operation)).toEqual(before);
  }
});

it("an operation that the kernel refuses fails as the first one, although those behind it were executed", async () => {
  const lastOf = (kind: Operation["kind"]) => operations.findLast((each) => each.kind === kind) ?? expect.unreachable();
  const at = operations.indexOf(lastOf("add-address"));
  const twice = operations.toSpliced(at + 1, 0, lastOf("add-address")); // refused, and routes and rules come behind it
  const failure = await failureOf(twice);
  expect(failure.operation).toBe(lastOf("add-address"));
  expect(failure.message).toMatch(/failed: Cannot add address .*EEXIST/);
  expect(failure.leftovers).toEqual([]);
});

it("requests without an answer fail, and all that they may have done is undone", async () => {
  const { pod } = scene;
  const route = { ...pod.route, pipeline: pod.route.pipeline };
  let left = 2;
  route.pipeline = (requests) => {
    const outcomes = pod.route.pipeline(requests);
    if (--left > 0) return outcomes;
    throw new NetlinkError({ operation: "receive from the kernel", errno: 105 });
  };
  const namespaces = { host: scene.host, pod: { ...pod, netfilter: pod.netfilter, route } };
  const error: unknown = await applyOperations(operations, namespaces, { remover }).catch((reason: unknown) => reason);
  expect(String(error)).toMatch(/failed: Cannot receive from the kernel: .*ENOBUFS/);
  expect(error instanceof ApplyError && error.leftovers).toEqual([]);
});

it("rp_filter of a link is set as its file would set it, and set back", async () => {
  const key = "ipv4/conf/net1/rp_filter";
  const was = readSysctl(scene.pod.path, key);
  const to = was === "2" ? "1" : "2";
  const change = { kind: "set-sysctl", place: "pod", key, from: was, to } as const;
  await apply([change]);
  expect(readSysctl(scene.pod.path, key)).toBe(to);
  await apply(inverseOfAll([change]));
  expect(readSysctl(scene.pod.path, key)).toBe(was);
});

it("a new pair has one queue at each end: the kernel would wait to take others away", async () => {
  await apply([{ kind: "add-veth", veth: VETH }]);
  for (const place of PLACES) {
    const [end] = ipJson(scene.names[place], `-d link show ${VETH[place].name}`);
    expect(end).toMatchObject({ num_tx_queues: 1, num_rx_queues: 1 });
  }
  await apply([{ kind: "delete-veth", veth: VETH }]);
});

describe("IPv6 of a new pair", () => {
  const key = { host: `ipv6/conf/${VETH.host.name}/disable_ipv6`, pod: `ipv6/conf/${VETH.pod.name}/disable_ipv6` };
  const ofPlace = (place: Place): Operation => ({
    kind: "set-sysctl",
    place,
    key: key[place],
    from: undefined,
    to: "0",
  });
  const create: Operation[] = [{ kind: "add-veth", veth: VETH }, ofPlace("host"), ofPlace("pod")];
  const settings = () => PLACES.map((place) => readSysctl(scene[place].path, key[place]));
  const setDefault = (value: string) => {
    for (const place of PLACES) writeSysctl(scene[place].path, "ipv6/conf/default/disable_ipv6", value);
  };
  afterEach(() => setDefault("0"));

  it.each(["0", "1"])("is on, whatever links get by default: disable_ipv6 %s", async (value) => {
    setDefault(value);
    await apply(create);
    expect(settings()).toEqual(["0", "0"]);
    await apply([{ kind: "delete-veth", veth: VETH }]);
  });

  it("is not set again when the kernel has done so, which would take a visit of the pod", async () => {
    const visits = async (): Promise<number> => {
      let count = 0;
      const pod = {
        ...scene.pod,
        netfilter: scene.pod.netfilter,
        get fd() {
          count++;
          return scene.pod.fd;
        },
      };
      await applyOperations(create, { host: scene.host, pod }, { remover });
      await apply([{ kind: "delete-veth", veth: VETH }]);
      return count;
    };
    const creation = 1; // the descriptor goes into the request
    expect(await visits()).toBe(creation);
    setDefault("1");
    expect(await visits()).toBeGreaterThan(creation);
  });
});

/** Adds an object that exists already, just before it is added. */
const kinds = ["add-veth", "add-address", "add-route", "add-rule", "add-table"] as const;
it.each(kinds)("%s of an object that exists fails in the kernel's words, and all is undone", async (kind) => {
  const at = operations.findIndex((operation) => operation.kind === kind);
  const again = operations[at] ?? expect.unreachable();
  const failure = await failureOf([...operations.slice(0, at + 1), again]);
  expect(failure.message).toMatch(/^"(pod|host): .*" failed: Cannot (add|create) .*file already exists \(EEXIST\)/);
  expect(failure.leftovers).toEqual([]);
});

it("an object that is gone is deleted already", async () => {
  const deletions = operations.filter(({ kind }) => kind.startsWith("delete-") && kind !== "delete-table");
  await apply(deletions);
  await apply([...deletions, { kind: "delete-veth", veth: VETH }]);
  const gone = { link: "gone0", ip: ip("10.0.0.1"), mac: mac("02:00:00:00:00:01") };
  await apply([{ kind: "delete-neighbour", place: "pod", neighbour: gone }]);
  await apply(operations.filter(({ kind }) => kind === "delete-table"));
  await apply(inverseOfAll(deletions));
});

const settings = { up: false, alias: "", group: 0 };
it.each<[what: string, operation: Operation, message: RegExp]>([
  [
    "a setting that the kernel refuses",
    { kind: "set-sysctl", place: "pod", key: "ipv4/conf/all/rp_filter", from: "0", to: "many" },
    /^"pod: sysctl net.*=many" failed: Cannot set sysctl .*EINVAL/,
  ],
  [
    "a link that is not there",
    { kind: "set-link", place: "host", link: "gone0", from: settings, to: { up: true } },
    /^"host: ip link set gone0 up" failed: Cannot find link "gone0": .*ENODEV/,
  ],
  [
    "an address for a link that is not there",
    { kind: "add-address", place: "pod", address: { link: "gone0", prefix: prefix("10.0.0.1/8"), scope: 0, flags: 0 } },
    /Cannot find link "gone0"/,
  ],
  [
    "the deletion of a veth that is another link",
    { kind: "delete-veth", veth: { ...VETH, host: { ...VETH.host, name: "br0" } } },
    /^"host: ip link del br0" failed: Link "br0" on the host is not a veth; it was not deleted$/,
  ],
])("%s fails, and all is undone", async (_, operation, message) => {
  const failure = await failureOf([...operations, operation]);
  expect(failure.message).toMatch(message);
  expect(failure.leftovers).toEqual([]);
});

it("a link of which the kernel set only a part is as it was", async () => {
  // two macvlans of one MAC cannot both be up
  ipIn(scene.names.host, `link add link up0 name net2 address 02:00:00:00:00:22 netns ${scene.names.pod} type macvlan`);
  const was = dump();
  const change = { kind: "set-link", place: "pod", link: "net2", from: settings } as const;
  const failure = await failureOf([{ ...change, to: { up: true, alias: "half", group: 9 } }]);
  expect(failure.message).toMatch(/^"pod: ip link set net2 .*" failed: .*(EBUSY|EADDRINUSE)/);
  expect(dump()).toEqual(was);
  ipIn(scene.names.pod, "link del net2");
});

it("a link with another MAC keeps its fixed neighbours, even when the kernel refuses the MAC", async () => {
  const fixed = () =>
    ipJson(scene.names.pod, "neigh show dev net1 nud permanent").map(({ dst }: { dst: string }) => dst);
  const was = fixed();
  expect(was).toEqual(["10.6.0.9"]);
  const change = { kind: "set-link", place: "pod", link: "net1" } as const;
  const [from, to] = [{ mac: mac("02:00:00:00:00:22") }, { mac: mac("02:00:00:00:00:23") }];
  await apply([{ ...change, from, to }]);
  expect(fixed()).toEqual(was);
  await apply([{ ...change, from: to, to: from }]);
  const failure = await failureOf([{ ...change, from, to: { mac: mac("01:00:00:00:00:23") } }]);
  expect(failure.message).toMatch(/EADDRNOTAVAIL/);
  expect(fixed()).toEqual(was);
});

it("a failed undo is reported, and the rest is undone", async () => {
  const [first = expect.unreachable(), ...rest] = operations.filter(({ kind }) => kind === "add-neighbour");
  const veth = operations.filter(({ kind }) => kind === "add-veth" || kind === "set-link").slice(0, 3);
  let undone = 0;
  const faults: Faults = (point) => {
    if (point === "kernel.undo" && ++undone === 2) throw new Error("no");
    if (point === "kernel.apply" && undone === 0 && --left === 0) throw new Error("enough");
  };
  let left = 4 + rest.length;
  const last = rest.at(-1) ?? expect.unreachable();
  const failure = await failureOf([...rest.slice(0, -1), ...veth, first, last], faults);
  const text = `"${formatOperation(inverseOfAll(veth)[0] ?? expect.unreachable())}": no`;
  expect(failure.leftovers).toEqual([text]);
  expect(failure.message).toContain(` failed: enough; could not be undone: ${text}`);
});

it("a link that goes meanwhile fails the operations that need it, and their undoing leaves nothing", async () => {
  let count = 0;
  const faults: Faults = () => {
    if (++count === 8) ipIn(scene.names.host, `link del ${VETH.host.name}`);
  };
  const failure = await failureOf(operations, faults);
  expect(failure.message).toMatch(/veth0.*" failed: .*ENODEV/);
  expect(failure.leftovers).toEqual([]);
});

it("a namespace that goes meanwhile is changed to the end, and takes the veth along when it is let go", async () => {
  using other = makeScene("bkav");
  let count = 0;
  const faults: Faults = () => {
    if (++count === 8) unmountNetns(other.names.pod);
  };
  const theirs = new LinkRemover(other.host.path);
  await applyOperations(operationsFor(other), other, { remover: theirs, faults });
  await theirs.close();
  const veths = () =>
    ipJson(other.names.host, "link").filter(({ ifname }: { ifname: string }) => ifname === VETH.host.name);
  expect(veths()).toHaveLength(1);
  other.pod[Symbol.dispose]();
  await expect.poll(veths, { timeout: 30_000 }).toEqual([]);
});

it("work in the two namespaces leaves the thread where it was, and no descriptor open", async () => {
  const observe = () => ({ netns: readlinkSync("/proc/thread-self/ns/net"), fds: readdirSync("/proc/self/fd").length });
  const outside = observe();
  for (let round = 0; round < 5; round++) {
    await failureOf([...operations, operations[0] ?? expect.unreachable()]);
    expect(observe()).toEqual(outside);
  }
});
