/** GC of the plugin: without a cluster the runtime's list decides, in a cluster it only nominates (late-del). */
import { expect, it } from "vitest";
import { IpamPlugin } from "../../../../host/agent/ipam/plugin.ts";
import type { Claim } from "../../../../host/registry/registry.ts";
import { clusterIpam } from "../../../world/cluster-ipam.ts";
import { addRequest, openNode, type TestNode } from "../../../world/node.ts";
import { claim, proposal } from "../../../world/subjects.ts";

/** Binds an address to each owner, from 10.6.0.`first` on. */
async function bind(node: TestNode, pods: Readonly<Record<string, Partial<Claim>>>, first = 1): Promise<void> {
  for (const [index, [owner, changes]] of Object.entries(pods).entries())
    await node.registry.claim(claim(owner, [proposal(`10.6.0.${first + index}`)], changes));
}

/** Returns the owners of the released addresses. `valid`: containers that the runtime knows; `alive`: in a cluster. */
async function collect(node: TestNode, valid: readonly string[] = [], alive?: string): Promise<string[]> {
  const cluster = clusterIpam({ isGone: async ({ owner }) => owner !== alive });
  const attachments = valid.map((containerID) => ({ containerID, ifname: "eth0" }));
  const call = addRequest("eth0", { body: { name: "net", "cni.dev/valid-attachments": attachments } });
  const ready = { synced: async () => {}, ready: true, problems: [], health: { trouble: undefined } };
  const plugin = new IpamPlugin(node.ipam(alive === undefined ? {} : { cluster }), ready);
  return (await plugin.gc({ ...call, command: "GC" })).map(({ owner }) => owner);
}

it("releases attachments that the list lacks of its network, if they are older than the call", async () => {
  const node = await openNode();
  await bind(node, { kept: {}, lost: {}, other: { network: "elsewhere" } });
  node.clock.jump(1);
  await bind(node, { young: {} }, 4);
  expect([await collect(node, ["c-kept"]), await collect(node, ["c-kept"])]).toEqual([["lost"], []]);
  node.clock.jump(1);
  expect(await collect(node)).toEqual(["kept", "young"]);
  expect(await node.states()).toEqual({ Bound: ["10.6.0.3"], Cooling: ["10.6.0.1", "10.6.0.2", "10.6.0.4"] });
});

it("late-del: releases in a cluster only attachments of a pod that is gone", async () => {
  const node = await openNode();
  await bind(node, { living: {}, gone: {}, unknown: { containerId: "-" }, ahead: { containerId: "" }, rival: {} });
  const quarantine = { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: 9 } as const;
  for (const row of await node.registry.findOwner("rival")) await node.registry.quarantine(row, quarantine);
  node.clock.jump(1);
  expect(await collect(node, [], "living")).toEqual(["gone"]);
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
