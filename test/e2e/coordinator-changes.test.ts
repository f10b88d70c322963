import { afterAll, beforeAll, expect, it } from "vitest";
import type { CheckRecord } from "../../host/records/check-record.ts";
import { macvlan } from "../lab/manifests.ts";
import { type ChainNode, coordinate, ENTRY, MACVLAN, makeChainNode, pairsOf } from "../lab/netns/coordinator.ts";
import type { LabPod } from "../lab/netns/world.ts";
import { SOON_MS } from "../lab/waiting.ts";
import { itLong } from "../world/long-cases.ts";

type Findings = CheckRecord["findings"];

const NETWORK = `ch${process.pid}`;

let node: ChainNode;
/** After the first pod came and went: the rule and the table that all pods share are there, and stay. */
let start: readonly string[];

beforeAll(async () => {
  node = await makeChainNode("ch");
  start = await node.begin(NETWORK);
});

afterAll(() => node.delete());

itLong("ADDs and DELs of one container at once: what came last holds, and a DEL leaves nothing", async () => {
  // With another plugin besides: the coordinator's DEL then leaves the NIC.
  const network = `${NETWORK}-more`;
  await node.define(network, [MACVLAN, { type: "portmap" }, ENTRY]);
  await node.withPod("atonce", async (pod) => {
    await pod.attach(network);
    for (let round = 0; round < 5; round++) {
      const verbs = ["DEL", "ADD", "ADD", "DEL", "ADD"] as const;
      await Promise.all(verbs.map((verb) => pod.coordinate(verb, network, { entry: ENTRY })));
      await coordinate(pod, "ADD", network, { entry: ENTRY });
      await coordinate(pod, "CHECK", network, { entry: ENTRY });
      expect(await pairsOf(node.netns)).toHaveLength(1);
    }
    await Promise.all([
      pod.coordinate("ADD", network, { entry: ENTRY }),
      pod.coordinate("ADD", network, { entry: ENTRY }),
    ]);
    await coordinate(pod, "DEL", network, { entry: ENTRY });
    expect(await pairsOf(node.netns)).toEqual([]);
    await pod.detach(network);
    await node.expectState(start);
  });
});

it("a node's address that goes and comes back takes no pod's way with it", () =>
  node.withPod("flap", async (pod) => {
    await pod.attach(NETWORK);
    const reaches = async (): Promise<boolean> =>
      (await node.netns.exec(["ping", "-c1", "-W1", pod.address(4)])).exitCode === 0;
    expect(await reaches()).toBe(true);
    const toNode = () => pod.netns.ip("route get 10.6.0.2");
    await node.netns.ip("addr del 10.6.0.2/16 dev uplink");
    expect(await node.netns.ip("route show table 500")).toContain(pod.address(4));
    await expect.poll(toNode, { timeout: SOON_MS }).toContain("dev eth0");
    await node.netns.ip("addr add 10.6.0.2/16 dev uplink");
    await node.netns.ip("route add default via 10.6.0.1");
    await expect.poll(toNode, { timeout: SOON_MS }).toContain("dev veth0");
    expect(await reaches()).toBe(true);
    await pod.check(NETWORK);
    await pod.detach(NETWORK);
    await node.expectState(start);
  }));

it("a table that was changed since is cleared by DEL, too", () =>
  node.withPod("table", async (pod) => {
    await pod.attach(NETWORK);
    await coordinate(pod, "DEL", NETWORK, { entry: { ...ENTRY, hostRuleTable: 501 } });
    expect(await node.netns.ip("route show table all proto 98")).toBe("");
    await pod.detach(NETWORK);
    await node.expectState(start);
  }));

/** With a pod whose address has no record, which would have to be 30 s old to be compared. */
async function withStatic(entry: object, use: (pod: LabPod, findings: () => Promise<Findings>) => Promise<void>) {
  const network = `${NETWORK}-static`;
  await node.configure({ hostRouteCIDR: ["10.6.0.77/32"] });
  const ipam = { type: "static", addresses: [{ address: "10.6.0.77/16", gateway: "10.6.0.1" }] };
  await node.define(network, [macvlan("uplink", ipam), { ...ENTRY, ...entry }]);
  // Other tests' namespaces, which check looks into as well, have no attachments of this agent.
  const findings = async (): Promise<Findings> => {
    const record: CheckRecord = await node.agent.get("/v1/check");
    return record.findings.filter(({ kind }) => kind === "drift");
  };
  try {
    await node.withPod("static", async (pod) => {
      await pod.attach(network);
      expect(await findings()).toEqual([]);
      await use(pod, findings);
      await pod.detach(network);
    });
  } finally {
    await node.configure({});
  }
}

it("a pod as release 0.4.0 left it has no drift, until it lacks a route", () =>
  withStatic({}, async ({ netns }, findings) => {
    for (const table of ["main", "100"]) {
      const options = `dev veth0 proto 98 table ${table}`;
      const lines = (await netns.ip(`-4 route show ${options}`)).split("\n").filter((line) => line.includes(" src "));
      await netns.ip(`-4 route flush ${options}`);
      for (const line of lines) await netns.ip(`route add ${line.replace(/ src \S+/, "")} ${options}`);
    }
    await netns.ip("addr flush dev veth0 scope link");
    expect(await findings()).toEqual([]);
    await netns.ip("route del 10.6.0.2/32 dev veth0");
    expect(await findings()).toMatchObject([{ kind: "drift", interface: "eth0" }]);
  }));
