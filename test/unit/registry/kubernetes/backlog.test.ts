import { expect, it } from "vitest";
import { ApiError } from "../../../../host/kubernetes/kube-api.ts";
import { LIST_PAGE } from "../../../../host/kubernetes/list.ts";
import { RETRY_MAX_MS } from "../../../../host/registry/kubernetes/backlog.ts";
import { allocationLines, openClusterNode } from "../../../world/node.ts";
import { claim, proposal } from "../../../world/subjects.ts";
import { COOLDOWN_MS } from "../registry-suite.ts";

it("objects that can be deleted are, even if many others cannot", async () => {
  const node = await openClusterNode({ poolSize: 100_000 });
  for (let at = 0; at <= LIST_PAGE; at++) {
    const owner = `p${at}`;
    await node.registry.claim(claim(owner, [proposal(`10.0.${at >> 8}.${at & 255}`)]));
    await node.registry.release({ containerId: `c-${owner}`, ifName: "eth0" });
    node.clock.ms++;
  }
  const last = `10.0.${LIST_PAGE >> 8}.${LIST_PAGE & 255}`;
  node.gate = async (call, commit) => {
    if (call.method !== "DELETE" || call.path.endsWith(last)) return commit();
    throw new ApiError({ status: 403, reason: "Forbidden", operation: "DELETE", message: "denied by a policy" });
  };
  await node.pass(COOLDOWN_MS);
  expect(node.freed).toEqual([last]);
  node.gate = async (_call, commit) => commit();
  await node.pass(RETRY_MAX_MS);
  expect(allocationLines(node.server)).toEqual([]);
});
