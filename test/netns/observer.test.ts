/** The observer on a segment without Berth: its records of the wire and the kernel, in both families. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { addBridge, addVeth, createNetns, type Netns } from "../lab/netns.ts";
import { type Observer, startObserver } from "../lab/observer/observer.ts";
import type { Finding } from "../lab/observer/segment-checker.ts";

const [V4, V6, HIDDEN, SILENT] = ["10.6.0.7", "fd00:6::7", "10.6.0.9", "10.6.0.11"];
const GRACE_MS = 1_000;
const NOTICED_MS = 15_000;

let observer: Observer;
const undo = new AsyncDisposableStack();

async function makeNetns(name: string): Promise<Netns> {
  const netns = await createNetns(`bo-${name}-${process.pid}`);
  undo.defer(() => netns.delete());
  return netns;
}

/** A machine on the segment with these addresses. */
async function addMachine(segment: Netns, name: string, addresses: readonly string[]): Promise<Netns> {
  const machine = await makeNetns(name);
  await addVeth({ netns: segment, name: `port-${name}` }, { netns: machine, name: "eth0" });
  await segment.ip(`link set port-${name} master br0`);
  for (const address of addresses) await machine.ip(`addr add ${address} dev eth0`);
  return machine;
}

beforeAll(async () => {
  const segment = await makeNetns("segment");
  await addBridge(segment, "br0");
  observer = await startObserver({
    ...{ name: segment.name, segment: { path: segment.path, bridge: "br0" }, graceMs: GRACE_MS },
    ranges: ["10.6.0.0/24"],
    senders: { v4: "10.6.1.254", v6: "fd00:6::fffe" },
    records: (onRecord) => {
      for (const address of [V4, V6, SILENT]) onRecord(address, { state: "Bound", holders: ["a"], text: "a" });
      return { [Symbol.dispose]: () => {} };
    },
  });
  for (const name of ["a", "b", "silent"]) observer.read(name, `/run/netns/bo-${name}-${process.pid}`);
  const both = [`${V4}/23`, `${V6}/64 nodad`];
  for (const name of ["a", "b"]) await addMachine(segment, name, both);
  await addMachine(segment, "hidden", [`${HIDDEN}/23`]);
  const silent = await addMachine(segment, "silent", [`${SILENT}/23`]);
  await silent.ip("link set eth0 arp off");
}, 60_000);

afterAll(() => undo.disposeAsync());

const find = (kind: Finding["kind"], address: string): Promise<Finding> =>
  observer.until((finding) => finding.kind === kind && finding.address === address, NOTICED_MS);

it.each([V4, V6])("two machines answer for %s, which both have", async (address) => {
  const [text = ""] = (await find("duplicate", address)).text.split(";");
  for (const name of ["a", "b"]) expect(text).toContain(`(${name}/bo-${name}-${process.pid} eth0)`);
});

it("an address that no record has is asked in its turn, and its machine is known by its answer alone", async () => {
  expect((await find("unrecorded", HIDDEN)).text).toContain("(unknown)");
});

it("a recorded NIC that is up does not answer", async () => {
  expect((await find("silent", SILENT)).text).toContain("(silent/bo-silent-");
});

it("findings that nothing takes away fail its end", async () => {
  await expect(observer.stop()).rejects.toThrow(/4 findings of the observer/);
});
