/**
 * The coordinator and a pod whose NIC is an ipvlan or a VLAN, on a kernel that has them: the built shim and agent,
 * and the agent's own functions.
 *
 * This kernel has no nftables for IP, so that an underlay pod cannot have its reply path and the agent refuses it. The
 * rest of the agent's work is done here by its own functions; the agent's CHECK then says that the tables are missing.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { observeHost, observePod } from "../../host/agent/coordinator/observe.ts";
import { DEFAULT_COORDINATOR_CONF } from "../../host/config/coordinator-settings.ts";
import { formatAlias } from "../../host/coordinator/plan/alias.ts";
import { nameVeth } from "../../host/coordinator/plan/names.ts";
import { planAttachment } from "../../host/coordinator/plan/plan-attachment.ts";
import { planMac } from "../../host/coordinator/plan/plan-mac.ts";
import { applyOperations } from "../../host/kernel/apply.ts";
import { LinkRemover } from "../../host/kernel/link-remover.ts";
import { openNamespace, openNode } from "../../host/kernel/open-namespace.ts";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { FAMILIES, type Family, type Ip } from "../../host/net/ip.ts";
import { diffPlan } from "../../host/plan/diff.ts";
import type { Operation } from "../../host/plan/operation.ts";
import { formatOperation } from "../../host/plan/text.ts";
import { lengthOf, NODE_HOSTS, segmentAddress, segmentSubnet } from "../lab/addressing.ts";
import { ALLOW_LAB, PreparedPod, withoutRetired } from "../lab/netns/coordinator.ts";
import { NetnsWorld } from "../lab/netns/world.ts";
import { addVeth } from "../lab/netns.ts";
import { readNetworkState } from "../lab/network-state.ts";
import { ask, ping, type Server, serve } from "../lab/traffic.ts";
import { ofRun } from "../world/long-cases.ts";
import { ip } from "../world/values.ts";
import { ipBatch } from "./ip-batch.ts";

const PORT = 8080;
const PREFIX = "0a:1b";
const conf = { serviceSnat: "off" };
/** Pods of the modes l3 and l3s are behind their node, in a subnet of their own: ipvlan answers no ARP for them. */
const IPVLAN: Kind = { type: "ipvlan mode l2", segment: 0 };
const KINDS: readonly Kind[] = [
  IPVLAN,
  { type: "ipvlan mode l3", segment: 1 },
  { type: "ipvlan mode l3s", segment: 1, isLong: true },
  { type: "vlan id 30", segment: 0, isLong: true },
];

interface Kind {
  readonly type: string;
  readonly segment: 0 | 1;
  /** Much like another one: only the long tests run it. */
  readonly isLong?: boolean;
}

let world: Awaited<ReturnType<typeof makeWorld>>;
let before: string[];

const addressesIn = ({ segment }: Kind) => ({
  node: (family: Family) => segmentAddress(0, NODE_HOSTS[0], family),
  other: (family: Family) => segmentAddress(0, NODE_HOSTS[1], family),
  pod: (family: Family) => segmentAddress(segment, 50, family),
  gateway: (family: Family) => segmentAddress(segment, segment === 0 ? NODE_HOSTS[1] : 1, family),
});

/**
 * The smallest place for an ipvlan pod; its default routes go to the other machine.
 *
 *   pod eth0 (ipvlan) ── node eth0 ───── eth0 other
 */
function makeWorld(place: Kind) {
  const addressOf = addressesIn(place);
  return NetnsWorld.build("uci", async (world) => {
    const [node, other, pod] = [
      await world.addNetns("node"),
      await world.addNetns("other"),
      await world.addNetns("pod"),
    ];
    for (const key of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"]) writeSysctl(node.path, key, "1");
    // Link-local addresses come by themselves, and the kernel would wait for their duplicates.
    for (const netns of [node, other, pod]) writeSysctl(netns.path, "ipv6/conf/default/addr_gen_mode", "1");
    await addVeth({ netns: node, name: "eth0" }, { netns: other, name: "eth0" });
    const isTagged = place.type.startsWith("vlan");
    const addresses = (name: "node" | "other" | "pod", link: string): string[] =>
      FAMILIES.map((family) => {
        const address = `${addressOf[name](family)}/${lengthOf(family)}`;
        return `addr add ${address} dev ${link}${family === 6 ? " nodad" : ""}`;
      });
    await ipBatch(node, [
      `link add link eth0 name ipvl0 type ${place.type}`,
      `link set ipvl0 netns ${pod.name} name eth0`,
      ...addresses("node", "eth0"),
    ]);
    await ipBatch(pod, [
      "link set eth0 up",
      ...addresses("pod", "eth0"),
      ...FAMILIES.map((family) => `route add default via ${addressOf.gateway(family)}`),
    ]);
    const routesToPod = FAMILIES.map(
      (family) => `route add ${segmentSubnet(place.segment, family)} via ${addressOf.node(family)}`,
    );
    await ipBatch(other, [
      ...(isTagged ? [`link add link eth0 name eth1 type ${place.type}`, "link set eth1 up"] : []),
      ...addresses("other", isTagged ? "eth1" : "eth0"),
      ...(place.segment === 0 ? [] : routesToPod),
    ]);
    const prepared = new PreparedPod(await world.addNode(node, ALLOW_LAB), pod, 50);
    const ips = FAMILIES.map((family) => ({ address: `${addressOf.pod(family)}/${lengthOf(family)}`, interface: 0 }));
    prepared.adopt("eth0", { interfaces: [{ name: "eth0", sandbox: pod.path }], ips });
    return Object.assign(world, { node, other, pod, prepared });
  });
}

async function readState(): Promise<string[]> {
  const options = { neighbours: "permanent", nft: false } as const;
  return [...(await readNetworkState(world.node, options)), ...(await readNetworkState(world.pod, options))];
}

function operationsOfAdd(addresses: readonly Ip[]): Operation[] {
  const { containerId } = world.prepared;
  const pair = nameVeth(containerId);
  using pod = openNamespace(world.pod.path);
  using host = openNode(world.node.path);
  const settings = { ...DEFAULT_COORDINATOR_CONF, serviceSnat: "off" } as const;
  const observed = {
    pod: observePod(pod, "eth0", "eth0"),
    host: observeHost(host, { pair, tables: [settings.hostRuleTable], addresses, isUnderlay: true }),
  };
  const alias = formatAlias({ owner: containerId, containerId, network: "lab", pod: "" });
  const nic = { mode: "underlay", ifName: "eth0", defaultNic: "", addresses, pair, alias, owner: containerId } as const;
  const { plan, warnings } = planAttachment({
    conf: settings,
    ...nic,
    routable: undefined,
    gateways: [],
    attached: [],
    observed,
  });
  expect(warnings).toEqual([]);
  return diffPlan(observed, plan);
}

const isTable = ({ kind }: Operation): boolean => kind === "add-table";

async function apply(operations: readonly Operation[]): Promise<void> {
  using pod = openNamespace(world.pod.path);
  using host = openNamespace(world.node.path);
  const remover = new LinkRemover(world.node.path);
  try {
    await applyOperations(operations, { pod, host }, { remover });
  } finally {
    await remover.close();
  }
}

/** Before its ADD. */
function testIpvlan(addressOf: ReturnType<typeof addressesIn>): void {
  describe("podMACPrefix", () => {
    it("is refused by ADD with the kind of the link, and nothing is changed", async () => {
      const refusal = await world.prepared.refused("ADD", { conf: { ...conf, podMACPrefix: PREFIX } });
      expect(refusal).toMatchObject({
        code: 106,
        msg:
          `podMACPrefix "${PREFIX}" cannot be applied to interface "eth0": it is of kind ipvlan, which has none of its own; ` +
          "remove podMACPrefix, or use macvlan",
      });
      expect(await readState()).toEqual(before);
    });

    it("is refused for the link as it is observed, and made for its parent", () => {
      using pod = openNamespace(world.pod.path);
      using host = openNamespace(world.node.path);
      const linkOf = (namespace: typeof pod) =>
        observePod(namespace, "eth0", "eth0").links.find(({ name }) => name === "eth0") ?? expect.unreachable();
      const addresses = [ip("10.6.0.21")];
      expect(linkOf(pod)).toMatchObject({ kind: "ipvlan", mac: linkOf(host).mac });
      expect(() => planMac(PREFIX, linkOf(pod), addresses)).toThrow("it is of kind ipvlan");
      expect(planMac("", linkOf(pod), addresses)).toBeUndefined();
      expect(planMac(PREFIX, linkOf(host), addresses)).toBe("0a:1b:0a:06:00:15");
    });
  });

  it("is refused by a kernel without nftables, and all that was done before is taken back", async () => {
    const refusal = await world.prepared.refused("ADD", { conf });
    expect(refusal).toMatchObject({ code: 108 });
    expect(refusal.msg).toMatch(/^"pod: nft add table inet berth" failed: Cannot add table "berth": .*not supported/);
    expect(await readState()).toEqual(before);
  });

  it("does not reach its node by the ipvlan", async () => {
    for (const family of FAMILIES) {
      expect(await ping(world.pod, addressOf.other(family), { count: 1 })).toBe(true);
      expect(await ping(world.pod, addressOf.node(family), { count: 1 })).toBe(false);
    }
  });
}

describe.each(ofRun(KINDS, ({ isLong }) => !isLong))("an underlay pod with $type", (place) => {
  const addressOf = addressesIn(place);
  beforeAll(async () => {
    world = await makeWorld(place);
    before = await readState();
  });
  afterAll(() => world.delete());

  if (place === IPVLAN) testIpvlan(addressOf);

  it("gets its pair, and with it the node, both ways; the segment stays on its NIC", async () => {
    const operations = operationsOfAdd(FAMILIES.map((family) => ip(addressOf.pod(family))));
    expect(operations.filter(isTable).map(formatOperation)).toEqual(["pod: nft add table inet berth"]);
    await apply(operations.filter((operation) => !isTable(operation)));
    const { node, other, pod } = world;
    const servers: Server[] = [];
    try {
      for (const netns of [pod, node, other]) servers.push(await serve(netns, PORT));
      for (const family of FAMILIES) {
        const [ofPod, ofNode, ofOther] = [addressOf.pod(family), addressOf.node(family), addressOf.other(family)];
        const ways = [
          [node, ofPod, pod, ofNode],
          [pod, ofNode, node, ofPod],
          [other, ofPod, pod, ofOther],
          [pod, ofOther, other, ofPod],
        ] as const;
        for (const [from, to, server, seenPeer] of ways) {
          for (const protocol of ["tcp", "udp"] as const) {
            const answer = await ask(from, to, PORT, { protocol, timeoutMs: 20_000 });
            expect(answer, `${protocol} ${from.name} > ${to}`).toMatchObject({ server: server.name, seenPeer });
          }
        }
        expect(await pod.ip(`route get ${ofNode}`)).toContain("dev veth0");
        expect(await pod.ip(`route get ${ofOther}`)).toContain("dev eth0");
      }
    } finally {
      for (const server of servers) await server.close();
    }
  });

  it("then lacks the table only, says CHECK", async () => {
    const refusal = await world.prepared.refused("CHECK", { conf });
    expect(refusal).toMatchObject({ code: 106, details: "pod: nft add table inet berth" });
  });

  it("is as it was after DEL, and the node but for the rule of all pods", async () => {
    expect(await world.prepared.run("coordinator", "DEL", { conf })).toMatchObject({ exitCode: 0, text: "" });
    for (const family of FAMILIES) await world.node.ip(`-${family} rule del pref 900`);
    await withoutRetired(world.node);
    expect(await readState()).toEqual(before);
  });
});
