/** CHECK reports what is missing, not what a node and its routers change by themselves. */
import { describe, expect, it } from "vitest";
import { coordinateEach } from "./coordinator-lab.ts";
import { makeNic, type Nic, nicOf } from "./coordinator-world.ts";
import { ipIn, showIn } from "./kernel-scene.ts";

const eth0 = nicOf("eth0", 6);
const net1 = nicOf("net1", 7);

const lab = coordinateEach("bck");

async function attach(nics: readonly Nic[]): Promise<void> {
  for (const nic of nics) {
    makeNic(lab.names, nic);
    await lab.world.add(nic, {});
  }
}

async function expectWell(nics: readonly Nic[]): Promise<void> {
  for (const nic of nics) await lab.world.check(nic, {});
}

describe.each([
  ["one NIC", [eth0]],
  ["two NICs", [eth0, net1]],
])("a pod with %s passes", (_, nics) => {
  const last = nics.at(-1) ?? expect.unreachable();

  it("when a router advertised a prefix, and itself", async () => {
    await attach(nics);
    for (const { name, net } of nics) {
      ipIn(
        lab.names.pod,
        `addr add fd00:aa::${net}/64 dev ${name} valid_lft 1000 preferred_lft 500 nodad noprefixroute`,
        `route append fd00:aa::/64 dev ${name} proto ra metric 256 expires 1000`,
        `route append ::/0 via fe80::1 dev ${name} proto ra metric 512 expires 300`,
        `addr add fd00:bb::${net}/64 dev ${name} valid_lft 1000 preferred_lft 500 nodad`,
      );
    }
    await expectWell(nics);
    await lab.world.add(last, {});
    await expectWell(nics);
  });

  it("when the router that was there is gone", async () => {
    const without = nics.map((nic) => ({ ...nic, gateway: false }));
    for (const nic of without) {
      makeNic(lab.names, nic);
      ipIn(lab.names.pod, `route append ::/0 via fe80::${nic.net} dev ${nic.name} proto ra metric 1024 expires 300`);
      await lab.world.add(nic, {});
    }
    ipIn(lab.names.pod, "route del ::/0 via fe80::6 dev eth0 proto ra");
    await expectWell(without);
  });
});

it("without a result of the chain, a changed MAC is reported if the coordinator has certainly set the one before", async () => {
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
