/** The rule retention: an earlier pod of a member loses its address on this node only when it is known to be over. */

import { expect, it } from "vitest";
import { evictPredecessor, isOwnerThere } from "../../../../host/agent/cluster/address-owners.ts";
import { DEFAULT_VENDOR_CONF } from "../../../../host/config/vendor-conf.ts";
import type { KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import type { Snapshot } from "../../../../host/resources/snapshot.ts";
import { proposal } from "../../../world/subjects.ts";

const former: Allocation = {
  ...proposal("10.6.0.1"),
  ...{ owner: "before", containerId: "c", network: "net", namespace: "shop", pod: "db-0", sinceMs: 0, version: 7 },
  ...{ state: "Bound", workload: { kind: "StatefulSet", namespace: "shop", name: "db", uid: "set", member: "db-0" } },
};

interface Case {
  readonly what: string;
  readonly claimant: { readonly namespace: string; readonly pod: string };
  readonly changes?: Partial<Allocation>;
  /** The pod's object is gone and its NIC has lost the address. */
  readonly isEnded?: boolean;
  /** The pod is finished, or gone and no NIC of it can be seen. */
  readonly isGone?: boolean;
  readonly wanted: string;
}

const SAME = { namespace: "shop", pod: "db-0" };
const OTHER = { ...SAME, pod: "db-1" };
const EVIL = { ...SAME, namespace: "evil" };
it.each<Case>([
  { what: "of the same name loses it when it is off its NIC", claimant: SAME, isEnded: true, wanted: "Cooling" },
  { what: "of the same name keeps it while its NIC has it", claimant: SAME, wanted: "11" },
  { what: "of the same name that was never attached", claimant: SAME, changes: { containerId: "" }, wanted: "Cooling" },
  {
    what: "of another namespace, never attached, that lives",
    claimant: EVIL,
    changes: { containerId: "" },
    wanted: "11",
  },
  { what: "of another namespace keeps it while it lives", claimant: EVIL, wanted: "11" },
  { what: "of another namespace that is gone", claimant: EVIL, isGone: true, wanted: "Cooling" },
  { what: "of another name keeps it while it lives", claimant: OTHER, wanted: "11" },
  { what: "of another name that is gone", claimant: OTHER, isGone: true, wanted: "Cooling" },
])("retention: an earlier pod $what", async ({ claimant, changes, isEnded, isGone = false, wanted }) => {
  const cool = async (row: Allocation): Promise<Allocation> => ({ ...row, state: "Cooling" });
  const deps = {
    registry: { collect: cool },
    isPodGone: async () => isGone,
    endOrphan: async (row: Allocation) => (isEnded ? cool(row) : undefined),
  };
  const displaced = evictPredecessor(deps, { ...former, ...changes }, claimant).then((row) => row?.state);
  expect(await displaced.catch((error) => `${error.code}`)).toBe(wanted);
});

it("retention: an owner of a kind that is not listed is gone only when the settings are known", async () => {
  const owner = { kind: "StatefulSet.apps.kruise.io", namespace: "shop", name: "web", uid: "set", member: "web-0" };
  const snapshot = { vendorConf: DEFAULT_VENDOR_CONF } as Snapshot;
  const isThere = (complete: boolean) => isOwnerThere({} as KubeApi, owner, { snapshot, complete });
  await expect(isThere(false)).rejects.toThrow("not known yet");
  expect(await isThere(true)).toBe(false);
});
