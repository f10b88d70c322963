/** GC of the plugin: without a cluster the runtime's list decides, in a cluster it only nominates (late-del). */
import { describe, expect, it } from "vitest";
import { IpamPlugin } from "../../../../host/agent/ipam/plugin.ts";
import type { Allocation, Claim } from "../../../../host/registry/registry.ts";
import { clusterIpam } from "../../../world/cluster-ipam.ts";
import { addRequest, openNode, type TestNode } from "../../../world/node.ts";
import { claim, proposal } from "../../../world/subjects.ts";

interface Gc {
  /** Containers whose NIC the runtime knows. */
  readonly valid?: readonly string[];
  /** Owners whose pod is there; only in a cluster. */
  readonly alive?: readonly string[];
}

async function bind(node: TestNode, pods: Readonly<Record<string, Partial<Claim>>>): Promise<void> {
  const count = (await node.registry.list(undefined, 9)).length;
  for (const [index, [owner, changes]] of Object.entries(pods).entries())
    await node.registry.claim(claim(owner, [proposal(`10.6.0.${count + index + 1}`)], changes));
}

/** Returns the owners of the released addresses. */
async function collect(node: TestNode, { valid = [], alive }: Gc = {}): Promise<string[]> {
  const isGone = async ({ owner }: Allocation): Promise<boolean> => alive?.includes(owner) !== true;
  const deps = node.ipam(alive === undefined ? {} : { cluster: clusterIpam({ isGone }) });
  const ready = { synced: async () => {}, readiness: () => ({ ready: true, problems: [] }) };
  const attachments = valid.map((containerID) => ({ containerID, ifname: "eth0" }));
  const call = addRequest("eth0", { body: { name: "net", "cni.dev/valid-attachments": attachments } });
  const request = { ...call, command: "GC" as const };
  return (await new IpamPlugin(deps, ready).gc(request)).map(({ owner }) => owner);
}

describe("a GC", () => {
  it("releases what the list lacks of its network, if it is older than the call", async () => {
    const node = await openNode();
    await bind(node, { kept: {}, lost: {}, other: { network: "elsewhere" } });
    node.clock.jump(1);
    await bind(node, { young: {} });
    expect(await collect(node, { valid: ["c-kept"] })).toEqual(["lost"]);
    expect(await collect(node, { valid: ["c-kept"] })).toEqual([]);
    node.clock.jump(1);
    expect(await collect(node)).toEqual(["kept", "young"]);
    expect(await node.states()).toEqual({ Bound: ["10.6.0.3"], Cooling: ["10.6.0.1", "10.6.0.2", "10.6.0.4"] });
  });

  it("releases nothing that was never attached or is in quarantine", async () => {
    const node = await openNode();
    await bind(node, { ahead: { containerId: "" }, rival: {} });
    const quarantine = { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: 9 } as const;
    for (const row of await node.registry.findOwner("rival")) await node.registry.quarantine(row, quarantine);
    node.clock.jump(1);
    expect(await collect(node)).toEqual([]);
  });

  it("late-del: releases in a cluster only what is of a pod that is gone", async () => {
    const node = await openNode();
    await bind(node, { living: {}, gone: {}, unknown: { containerId: "-" } });
    node.clock.jump(1);
    expect(await collect(node, { alive: ["living"] })).toEqual(["gone"]);
  });

  it("leaves an address that another sandbox of the pod has taken meanwhile", async () => {
    const node = await openNode({
      around: async (method, _args, run) => {
        if (method === "collect") await node.registry.claim(claim("a", [], { containerId: "next" }));
        return run();
      },
    });
    await bind(node, { a: {} });
    node.clock.jump(1);
    expect([await collect(node), await node.stateOf("10.6.0.1")]).toEqual([[], "Bound"]);
  });
});
