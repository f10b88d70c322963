import { accept, type Row, refuse, refuseForm } from "./rows.ts";

const KIND = "IPAllocation";
const SIX = "fd00-0000-0000-0000-0000-0000-0000-000a";
export const HOLDER = { namespace: "shop", pod: "web-0", podUID: "u1", interface: "eth0", node: "n1" };
export const WORKLOAD = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", member: "web-0" };
export const QUARANTINE = { reason: "Conflict", mac: "02:00:00:00:00:01", parent: "eth1" };

/** Returns an address that no other row of this file has. */
let next = 0;
function freshAddress(): string {
  next++;
  return `10.9.${next >> 8}.${next & 255}`;
}

type Keys = Readonly<Record<string, unknown>>;

export function bound(address: string, keys: Keys = {}) {
  return { address, prefixLength: 16, pool: "blue", state: "Bound", node: "n1", holders: [HOLDER], ...keys };
}

const ok = (keys: Keys, name?: string): Row => {
  const address = freshAddress();
  const spec = bound(address, keys);
  return accept(KIND, spec, { name: name ?? address });
};

function wrong(build: typeof refuse, keys: Keys, field: string, name?: string): Row {
  const address = freshAddress();
  return build(KIND, bound(address, keys), field === "metadata.name" ? field : `spec.${field}`, {
    name: name ?? address,
  });
}

const no = (keys: Keys, field: string, name?: string) => wrong(refuse, keys, field, name);
const form = (keys: Keys, field: string, name?: string) => wrong(refuseForm, keys, field, name);
const off = (state: string, keys: Keys = {}) => ({ state, holders: [], ...keys });
const NAMES = ["interface", "node", "podUID"] as const;
const LONG = "n".repeat(254);

export const ALLOCATION_ROWS: readonly Row[] = [
  ok({}),
  ok({ addressSpace: "", since: "2026-11-20T04:00:00Z" }),
  ok({ since: "2026-11-20T04:00:00.123456789Z" }),
  ok({ address: "10.8.0.1", addressSpace: "lab" }, "10.8.0.1.lab"),
  ok({ address: "fd00::a", prefixLength: 128 }, SIX),
  ok({ address: "fd00::a", prefixLength: 64, addressSpace: "a-9" }, `${SIX}.a-9`),
  ok({ address: "::", prefixLength: 0 }, "0000-0000-0000-0000-0000-0000-0000-0000"),
  ok({ prefixLength: 0 }),
  ok({ prefixLength: 32 }),
  ok({ workload: WORKLOAD }),
  ok({ holders: [HOLDER, { ...HOLDER, podUID: "u2", node: "n2" }], workload: WORKLOAD }),
  ok({
    holders: [
      { ...HOLDER, node: "n2" },
      { ...HOLDER, podUID: "u2" },
    ],
    workload: WORKLOAD,
  }),
  ok({ quarantine: QUARANTINE }),
  ok({ holders: [{ ...HOLDER, namespace: "", pod: "" }] }),
  ok(off("Cooling")),
  ok(off("Cooling", { holders: undefined })),
  ok(off("Cooling", { workload: WORKLOAD })),
  ok(off("Kept", { workload: WORKLOAD })),
  ok(off("Kept", { workload: { ...WORKLOAD, interface: "net1" } })),
  ok(off("Kept", { workload: WORKLOAD, lastHolder: HOLDER })),
  ok(off("Kept", { workload: { ...WORKLOAD, namespace: undefined } })),
  ok(off("Quarantined", { quarantine: QUARANTINE })),
  ok(off("Quarantined", { quarantine: { reason: "NodeLost" }, workload: WORKLOAD })),

  refuseForm(KIND, undefined, "spec", { name: "10.8.0.2" }),
  form({ address: undefined }, "address"),
  form({ address: "1".repeat(46) }, "address"),
  no({ address: "10.8.0" }, "address"),
  no({ address: "FD00::A" }, "address", SIX),
  no({ address: "fd00:0::a" }, "address", SIX),
  no({ address: "::ffff:10.0.0.1" }, "address"),
  no({}, "metadata.name", "10.8.1.1"),
  no({ address: "10.8.1.2" }, "metadata.name", "10.8.1.2.lab"),
  no({ address: "10.8.1.3", addressSpace: "lab" }, "metadata.name", "10.8.1.3"),
  no({ address: "10.8.1.4", addressSpace: "lab" }, "metadata.name", "10.8.1.4-lab"),
  no({ address: "10.8.1.5", addressSpace: "lab" }, "metadata.name", "10.8.1.5.lab.lab"),
  no({ address: "fd00::b" }, "metadata.name", SIX),
  no({ address: "fd00::a" }, "metadata.name", "fd00--a"),
  no({ address: "fd00::a" }, "metadata.name", `${SIX}.lab`),
  no({ address: "fd00::a", addressSpace: "lab" }, "metadata.name", SIX),
  no({ address: "fd00::a" }, "metadata.name", `${SIX}-0000`),
  { ...no({ addressSpace: "Lab" }, "addressSpace", "10.8.1.6.lab"), also: ["metadata.name"] },
  form({ prefixLength: undefined }, "prefixLength"),
  form({ prefixLength: -1 }, "prefixLength"),
  form({ prefixLength: 129 }, "prefixLength"),
  form({ prefixLength: "16" }, "prefixLength"),
  no({ prefixLength: 33 }, "prefixLength"),
  form({ pool: undefined }, "pool"),
  form({ pool: "" }, "pool"),
  form({ pool: LONG }, "pool"),
  form({ node: "" }, "node"),
  form({ node: LONG }, "node"),
  form({ state: undefined }, "state"),
  form({ state: "bound" }, "state"),
  no({ node: "n2" }, "node"),
  no({ holders: [] }, "holders"),
  no({ holders: undefined }, "holders"),
  no({ state: "Cooling" }, "holders"),
  no({ state: "Kept", workload: WORKLOAD }, "holders"),
  no({ state: "Quarantined", quarantine: QUARANTINE }, "holders"),
  no({ holders: [HOLDER, { ...HOLDER, podUID: "u2" }] }, "holders"),
  no({ holders: [HOLDER, { ...HOLDER, interface: "net1" }], workload: WORKLOAD }, "holders"),
  form({ holders: [HOLDER, HOLDER, HOLDER], workload: WORKLOAD }, "holders"),
  form({ holders: {} }, "holders"),
  ...NAMES.map((key) => ({
    ...form({ holders: [{ ...HOLDER, [key]: "" }] }, `holders[0].${key}`),
    also: key === "node" ? ["spec.node"] : [],
  })),
  ...NAMES.map((key) => form({ holders: [{ ...HOLDER, [key]: undefined }] }, `holders[0].${key}`)),
  form({ holders: [{ ...HOLDER, podUID: "u".repeat(64) }] }, "holders[0].podUID"),
  form({ holders: [{ ...HOLDER, pod: LONG }] }, "holders[0].pod"),
  form({ holders: [{ ...HOLDER, namespace: LONG }] }, "holders[0].namespace"),
  no(off("Kept"), "workload"),
  no({ lastHolder: HOLDER }, "lastHolder"),
  no(off("Cooling", { lastHolder: HOLDER }), "lastHolder"),
  form(off("Kept", { workload: WORKLOAD, lastHolder: { ...HOLDER, podUID: "" } }), "lastHolder.podUID"),
  form({ workload: { ...WORKLOAD, uid: "" } }, "workload.uid"),
  form({ workload: { ...WORKLOAD, member: undefined } }, "workload.member"),
  form({ workload: { ...WORKLOAD, name: LONG } }, "workload.name"),
  form({ workload: { ...WORKLOAD, kind: 7 } }, "workload.kind"),
  form({ workload: { ...WORKLOAD, namespace: "" } }, "workload.namespace"),
  form({ workload: { ...WORKLOAD, interface: "" } }, "workload.interface"),
  no(off("Quarantined"), "quarantine"),
  no(off("Cooling", { quarantine: QUARANTINE }), "quarantine"),
  no(off("Kept", { quarantine: QUARANTINE, workload: WORKLOAD }), "quarantine"),
  form(off("Quarantined", { quarantine: { reason: "Fire" } }), "quarantine.reason"),
  form(off("Quarantined", { quarantine: { ...QUARANTINE, mac: LONG } }), "quarantine.mac"),
  form({ since: "yesterday" }, "since"),
  form({ since: "2026-11-20T04:00:00+01:00" }, "since"),
];
