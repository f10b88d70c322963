/**
 * The repair of an attachment restores the objects that CHECK misses, all or nothing, and only while the attachment and
 * its namespace are the pod's.
 */
import { expect, it } from "vitest";
import { formatOperation } from "../../host/plan/text.ts";
import { coordinateEach } from "./coordinator-lab.ts";
import { snapshot } from "./coordinator-snapshot.ts";
import { makeNic, nicOf } from "./coordinator-world.ts";
import { ipIn, showIn } from "./kernel-scene.ts";

const eth0 = nicOf("eth0", 6);

const lab = coordinateEach("bcrp");

async function attach(): Promise<void> {
  makeNic(lab.names, eth0);
  await lab.world.add(eth0, {});
}

it("restores missing objects, and returns its operations", async () => {
  await attach();
  expect(await lab.world.repair(eth0, {})).toEqual([]);
  ipIn(lab.names.pod, "route flush proto 98", "neigh flush nud permanent dev veth0");
  ipIn(lab.names.node, "rule del pref 900");
  const done = (await lab.world.repair(eth0, {})).map(formatOperation);
  expect(done).toContain("host: ip rule add pref 900 from all lookup 500 proto 98");
  expect(done.filter((text) => text.startsWith("pod: ip neigh add"))).not.toEqual([]);
  await lab.world.check(eth0, {});
  expect(await lab.world.repair(eth0, {})).toEqual([]);
});

it("does nothing after a DEL, although the NIC is still there", async () => {
  await attach();
  await lab.world.del(eth0, {});
  const before = await snapshot(lab.names);
  expect(await lab.world.repair(eth0, {})).toEqual([]);
  expect(await snapshot(lab.names)).toEqual(before);
});

it("undoes all of it when the kernel refuses a part", async () => {
  await attach();
  ipIn(lab.names.pod, "link del veth0");
  const before = await snapshot(lab.names);
  let count = 0;
  lab.world.setFaults((point) => {
    if (point === "kernel.apply" && ++count === 9) throw new Error("no room");
  });
  await expect(lab.world.repair(eth0, {})).rejects.toThrow(/no room$/);
  expect(await snapshot(lab.names)).toEqual(before);
});

it("leaves a namespace whose interface has another address", async () => {
  await attach();
  ipIn(lab.names.pod, "link del veth0", "addr flush dev eth0", "addr add 10.6.0.77/24 dev eth0");
  const before = await snapshot(lab.names);
  await expect(lab.world.repair(eth0, {})).rejects.toThrow(/does not have 10\.6\.0\.\d+, so another pod may have/);
  expect(await snapshot(lab.names)).toEqual(before);
});

it("without a result of the chain, CHECK reports a changed MAC if the coordinator has certainly set the one before", async () => {
  const conf = { podMACPrefix: "0a:1b" };
  makeNic(lab.names, eth0);
  await lab.world.add(eth0, conf);
  await lab.world.check(eth0, conf);
  ipIn(lab.names.pod, "link set eth0 address 02:00:00:00:00:99");
  await expect(lab.world.check(eth0, conf)).rejects.toThrow('requires "pod: ip link set eth0 address 0a:1b:0a:06:');
  await lab.world.add(eth0, conf);
  await lab.world.check(eth0, conf);
  const record = /berth-mac-\S+/.exec(showIn(lab.names.pod, "link show dev eth0"))?.[0] ?? expect.unreachable();
  ipIn(lab.names.pod, `link property del dev eth0 altname ${record}`, "link set eth0 address 02:00:00:00:00:99");
  await lab.world.check(eth0, conf);
});
