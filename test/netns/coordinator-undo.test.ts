/** An ADD that is taken back when its pod's namespace has lost its path, or the path leads to another pod: nothing stays on the node. */
import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  addressOf,
  deleteNamespaces,
  makeNamespaces,
  makeNic,
  type Names,
  type Nic,
  openWorld,
  type World,
} from "./coordinator-world.ts";
import { ipIn, unmountNetns } from "./kernel-scene.ts";

const overlay: Nic = { name: "eth0", net: 244, families: [4, 6], gateway: true, kind: "bridge" };
const net1: Nic = { name: "net1", net: 7, families: [4, 6], gateway: true, kind: "macvlan" };

const ADDRESS = addressOf(net1, 4);

let names: Names;
let world: World;

beforeEach(async () => {
  names = makeNamespaces("bcu");
  world = await openWorld(names);
  for (const nic of [overlay, net1]) makeNic(names, nic);
});

afterEach(async () => {
  await world[Symbol.asyncDispose]();
  deleteNamespaces(names);
  unmountNetns(`${names.pod}-hold`);
});

const ip = (netns: string, args: string): string =>
  execFileSync("ip", ["-n", netns, ...args.split(" ")], { encoding: "utf8" });
const leftOnNode = (): string => {
  const routes = ["", "-6 "].map((family) => ip(names.node, `${family}route show table all proto 98`));
  return [...routes, ip(names.node, "neigh show nud permanent")].join("").trim();
};

/** In the pod: detection listens there for as long as it waits. The first line is a heading. */
const packetSockets = (): number =>
  execFileSync("ip", ["netns", "exec", names.pod, "cat", "/proc/net/packet"]).toString().trim().split("\n").length - 1;

it("while detection waits: the refusal is detection's", async () => {
  const detectOptions = { retry: 1, interval: "100ms", timeout: "600ms" };
  const added = world.add(net1, { mode: "overlay", detectGateway: true, detectOptions });
  const refused = expect(added).rejects.toThrow("did not answer");
  await vi.waitFor(() => expect(packetSockets()).toBeGreaterThan(0), { interval: 5 });
  unmountNetns(names.pod);
  await refused;
  expect(leftOnNode()).toBe("");
});

it("when the caller hung up and the namespace is gone", async () => {
  const undo = await world.addAbandoned(net1, {});
  expect(leftOnNode()).toContain(ADDRESS);
  unmountNetns(names.pod);
  await undo();
  expect(leftOnNode()).toBe("");
});

it("when the caller hung up and the path is another pod's: that one is left alone", async () => {
  const undo = await world.addAbandoned(net1, {});
  execFileSync("ip", ["netns", "add", `${names.pod}-hold`]); // else the new one might have the number of the old one
  ip(names.pod, `link set net1 netns ${names.pod}-hold`);
  unmountNetns(names.pod);
  execFileSync("ip", ["netns", "add", names.pod]);
  ipIn(names.pod, `rule add pref 910 from ${ADDRESS} lookup 101 protocol 98`);
  await undo();
  expect(leftOnNode()).toBe("");
  expect(ip(names.pod, "rule show pref 910")).toContain(ADDRESS);
});
