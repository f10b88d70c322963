/** An ADD that is undone, also when its pod's namespace has lost its path, or the path leads to another pod. */
import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { coordinateEach } from "./coordinator-lab.ts";
import { snapshot } from "./coordinator-snapshot.ts";
import { addressOf, makeNic, nicOf, openWorld } from "./coordinator-world.ts";
import { ipIn, showIn, unmountNetns } from "./kernel-scene.ts";

const overlay = nicOf("eth0", 244, { kind: "bridge" });
const net1 = nicOf("net1", 7);

const ADDRESS = addressOf(net1, 4);

const lab = coordinateEach("bcu");

beforeEach(async () => {
  for (const nic of [overlay, net1]) makeNic(lab.names, nic);
});

afterEach(async () => {
  unmountNetns(`${lab.names.pod}-hold`);
});

const leftOnNode = (): string => {
  const routes = ["", "-6 "].map((family) => showIn(lab.names.node, `${family}route show table all proto 98`));
  return [...routes, showIn(lab.names.node, "neigh show nud permanent")].join("").trim();
};

/** In the pod: detection listens there for as long as it waits. Without the heading. */
const packetSockets = (): number =>
  execFileSync("ip", ["netns", "exec", lab.names.pod, "tail", "-n", "+2", "/proc/net/packet"]).toString().split("\n")
    .length - 1;

it("while detection waits: the refusal is detection's", async () => {
  const detectOptions = { retry: 1, interval: "100ms", timeout: "600ms" };
  const added = lab.world.add(net1, { mode: "overlay", detectGateway: true, detectOptions });
  const refused = expect(added).rejects.toThrow("did not answer");
  await vi.waitFor(() => expect(packetSockets()).toBeGreaterThan(0), { interval: 5 });
  unmountNetns(lab.names.pod);
  await refused;
  expect(leftOnNode()).toBe("");
});

it("when the caller hung up: pod and node are as they were, but for what routers gave the NIC", async () => {
  const before = await snapshot(lab.names);
  ipIn(
    lab.names.pod,
    "addr add fd00:bad::33/64 dev net1 mngtmpaddr nodad",
    "route add ::/0 via fe80::bad dev net1 proto ra metric 512",
  );
  const undo = await lab.world.addAbandoned(net1, {});
  expect(await snapshot(lab.names)).not.toEqual(before);
  await undo();
  expect(await snapshot(lab.names)).toEqual(before);
});

it("when the caller hung up and the namespace is gone", async () => {
  const undo = await lab.world.addAbandoned(net1, {});
  expect(leftOnNode()).toContain(ADDRESS);
  unmountNetns(lab.names.pod);
  await undo();
  expect(leftOnNode()).toBe("");
});

it("when the caller hung up and the path is another pod's: that one is left alone", async () => {
  const undo = await lab.world.addAbandoned(net1, {});
  execFileSync("ip", ["netns", "add", `${lab.names.pod}-hold`]); // else the new one might have the number of the old one
  showIn(lab.names.pod, `link set net1 netns ${lab.names.pod}-hold`);
  unmountNetns(lab.names.pod);
  execFileSync("ip", ["netns", "add", lab.names.pod]);
  ipIn(lab.names.pod, `rule add pref 910 from ${ADDRESS} lookup 101 protocol 98`);
  await undo();
  expect(leftOnNode()).toBe("");
  expect(showIn(lab.names.pod, "rule show pref 910")).toContain(ADDRESS);
});

it("when a DEL comes while the ADD applies its changes: nothing of it stays, nor in the memory of explain", async () => {
  let deleted: Promise<void> | undefined;
  lab.world.setFaults(() => {
    deleted ??= lab.world.del(net1, {});
  });
  await lab.world.add(net1, {});
  await deleted;
  expect(leftOnNode()).toBe("");
  expect(lab.world.explain("shop", "web-0")).toEqual([]);
});

it("of an attachment that the agent has released while its main plugin was at work: refused", async () => {
  await using world = await openWorld(lab.names, { isReleased: () => true });
  await expect(world.add(net1, { mode: "overlay" })).rejects.toMatchObject({ code: 11 });
  expect([leftOnNode(), showIn(lab.names.pod, "route show proto 98")]).toEqual(["", ""]);
});
