/** A hostile pod changes its own namespace: its DEL succeeds all the same, soon, and the node keeps nothing of it. */

import { beforeEach, expect, it } from "vitest";
import { MAX_POD_ENTRIES } from "../../host/kernel/open-namespace.ts";
import { coordinateEach } from "./coordinator-lab.ts";
import { addressOf, makeNic, nicOf } from "./coordinator-world.ts";
import { ipIn, nftIn, showIn } from "./kernel-scene.ts";

const eth0 = nicOf("eth0", 6);
const net1 = nicOf("net1", 7);

const lab = coordinateEach("bch");

beforeEach(async () => {
  for (const nic of [eth0, net1]) {
    makeNic(lab.names, nic);
    await lab.world.add(nic, {});
  }
});

async function expectGone(): Promise<void> {
  for (const nic of [net1, eth0]) await lab.world.del(nic, {});
  expect(showIn(lab.names.node, "-o link").match(/veth[0-9a-f]{11}/g)).toBe(null);
  expect(showIn(lab.names.node, "route show table 500").trim()).toBe("");
}

it("a rule with more conditions before ours", async () => {
  ipIn(lab.names.pod, "rule del pref 910 protocol 98", "rule del pref 910 protocol 98");
  ipIn(lab.names.pod, `rule add pref 910 from ${addressOf(net1, 4)} lookup 102 suppress_prefixlength 0 protocol 98`);
  ipIn(lab.names.pod, `rule add pref 910 from ${addressOf(net1, 4)} lookup 102 protocol 98`);
  await expectGone();
});

it("an nft table of our name with a set of addresses", async () => {
  nftIn(
    lab.names.pod,
    `delete table inet berth
table inet berth { set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 } }
 map m { type ipv4_addr : verdict; elements = { 10.0.0.1 : accept } }
 chain c { type filter hook input priority 0; policy drop; ip saddr vmap @m; limit rate 1/second accept; }
 chain d { }
}`,
  );
  await expectGone();
});

it("a route with next hops that no answer has room for", async () => {
  ipIn(
    lab.names.pod,
    "link add d0 type veth peer name d1",
    "addr add 10.99.0.1/16 dev d0",
    "link set d0 up",
    "link set d1 up",
  );
  ipIn(lab.names.pod, "addr add fd00:99::1/64 dev d0 nodad");
  const hops = Array.from(
    { length: 1500 },
    (_, at) => `route append fd00:98::/64 via fd00:99::${(at + 2).toString(16)} dev d0`,
  );
  ipIn(lab.names.pod, ...hops);
  await expectGone();
});

/** As many lines of `ip` as `count`, each with an address of its own. */
function fill(count: number, line: (address: string, at: number) => string): void {
  const lines = Array.from({ length: count }, (_, at) => line(`10.99.${at >> 8}.${at & 255}`, at));
  ipIn(lab.names.pod, ...lines);
}

// Each of them with each of them takes minutes, and the node's other pods wait.
const crowds: [what: string, count: number, line: (address: string, at: number) => string][] = [
  ["addresses", 4_000, (address) => `addr add ${address}/32 dev net1`],
  ["routes as Berth makes them", 8_000, (address) => `route add ${address}/32 dev net1 proto 98`],
  ["rules as Berth makes them", 4_000, (address) => `rule add pref 910 from ${address} lookup 102 protocol 98`],
  ["links", 1_000, (_, at) => `link add d${at} type veth peer name e${at}`],
];
it.each(crowds)("very many %s", { timeout: 30_000 }, async (_what, count, line) => {
  fill(count, line);
  await expectGone();
});

it("more routes than are read: ADD and CHECK are refused", { timeout: 30_000 }, async () => {
  fill(MAX_POD_ENTRIES + 1, (address) => `route add ${address}/32 dev net1`);
  const refusal = expect.objectContaining({ message: expect.stringContaining(`more than ${MAX_POD_ENTRIES} entries`) });
  await expect(lab.world.add(net1, {})).rejects.toEqual(refusal);
  await expect(lab.world.check(net1, {})).rejects.toEqual(refusal);
  await expectGone();
});
