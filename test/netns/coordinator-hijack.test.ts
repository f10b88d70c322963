/** The default route over the node (`hijackCIDR: 0.0.0.0/0`) of a pod in which a NIC gets one of its own later. */
import { expect, it } from "vitest";
import { coordinateEach } from "./coordinator-lab.ts";
import { addressOf, makeNic, nicOf } from "./coordinator-world.ts";
import { ipIn, ipJson } from "./kernel-scene.ts";

const CONF = { hijackCIDR: ["0.0.0.0/0"] };
const lab = coordinateEach("bchj");
const BARE = { families: [4], gateway: false } as const;
const eth0 = nicOf("eth0", 6, BARE);
const net1 = nicOf("net1", 7, BARE);

it("is replaced once when its source's NIC goes, behind the NIC's own", async () => {
  const { names, world } = lab;
  for (const nic of [eth0, net1]) {
    makeNic(names, nic);
    await world.add(nic, CONF);
  }
  ipIn(names.pod, `route prepend default via ${addressOf(net1, 4, 1)} dev net1`);
  const defaults = () =>
    ipJson(names.pod, "route show default").map((route: Record<string, unknown>) => [route.dev, route.prefsrc]);
  expect(defaults()).toEqual([
    ["net1", undefined],
    ["veth0", addressOf(eth0, 4)],
  ]);
  await world.del(eth0, CONF);
  expect(defaults()).toEqual([
    ["net1", undefined],
    ["veth0", addressOf(net1, 4)],
  ]);
});
