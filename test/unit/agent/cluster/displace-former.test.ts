/** Rule 8: an earlier pod of a member loses its address on this node only when it is known to be over. */
import { expect, it } from "vitest";
import { displaceFormer } from "../../../../host/agent/cluster/keepers.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { proposal } from "../../registry/registry-suite.ts";

const former: Allocation = {
  ...proposal("10.6.0.1"),
  ...{ owner: "before", containerId: "c", network: "net", namespace: "shop", pod: "db-0", sinceMs: 0, version: 7 },
  ...{ state: "Bound", workload: { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0" } },
};

it.each<[what: string, claimant: { namespace: string; pod: string }, isGone: boolean, wanted: string]>([
  [
    "of the same namespace and name is over, as the live pod asks",
    { namespace: "shop", pod: "db-0" },
    false,
    "Cooling",
  ],
  ["of another namespace and the same name keeps it while it lives", { namespace: "evil", pod: "db-0" }, false, "11"],
  ["of another namespace and the same name that is gone", { namespace: "evil", pod: "db-0" }, true, "Cooling"],
  ["of another name keeps it while it lives", { namespace: "shop", pod: "db-1" }, false, "11"],
  ["of another name that is gone", { namespace: "shop", pod: "db-1" }, true, "Cooling"],
])("rule 8: an earlier pod %s", async (_, claimant, isGone, wanted) => {
  const registry = { collect: async (row: Allocation): Promise<Allocation> => ({ ...row, state: "Cooling" }) };
  const displaced = displaceFormer({ registry, isPodGone: async () => isGone }, former, claimant);
  expect(await displaced.then((row) => row?.state, (error) => `${error.code}`)).toBe(wanted); // biome-ignore format: one thought
});
