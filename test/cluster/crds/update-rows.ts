import { bound, HOLDER, QUARANTINE, WORKLOAD } from "./allocation-rows.ts";

/** An object, its update, and the API server's answer: nothing, or a field and the text of the refusal. */
export interface UpdateRow {
  readonly title: string;
  readonly kind: string;
  readonly before: object;
  /** Of the object before. Default: none. */
  readonly status?: object;
  readonly after: object;
  readonly refusal?: readonly [field: string, text: string];
}

const IMMUTABLE = "the original value; the field is immutable";
const TAKE_OVER =
  "the same node; another node may take over only an address that is Cooling or Quarantined, or of the same member of a workload";

const SUBNET = "10.6.0.0/24";

const AT = { subnet: SUBNET };

const changes =
  (kind: string) =>
  (title: string, before: object, after: object, refusal?: UpdateRow["refusal"]): UpdateRow => ({
    ...{ title, kind, before, after },
    ...(refusal === undefined ? {} : { refusal }),
  });

const ADDRESSES: readonly UpdateRow[] = ["IPPool", "Subnet"]
  .map(changes)
  .flatMap((row) => [
    row("another address space", inSpace("a"), inSpace("b"), ["spec.addressSpace", IMMUTABLE]),
    row("an address space where there was none", AT, inSpace("b"), ["spec.addressSpace", IMMUTABLE]),
    row("an address space no more", inSpace("a"), AT, ["spec.addressSpace", IMMUTABLE]),
    row(
      "ranges, gateway and routes",
      { ...AT, ips: ["10.6.0.1-10.6.0.9"], gateway: "10.6.0.1" },
      { ...AT, ips: [], excludeIPs: ["10.6.0.3"], routes: [{ dst: "10.0.0.0/8", gw: "10.6.0.2" }] },
    ),
    row("a gateway outside", AT, { ...AT, gateway: "10.7.0.1" }, ["spec.gateway", "an address inside 10.6.0.0/24"]),
  ]);

const CANNOT_GROW = "the original network, which is that of its Subnet or AddressRange";
const GENERATED = {
  subnet: "blue",
  application: { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u1" },
  interface: "eth0",
  ...{ reclaim: true, wanted: 1, reason: "" },
};

/** `to` replaces the subnet `from`; `more` is beside both. */
function resized(kind: string, from: string, to: string, refusal?: string, more: object = {}): UpdateRow {
  const title = `${from} becomes ${to}${Object.keys(more).map((key) => `, with ${key}`)}`;
  const row = { title, kind, before: { subnet: from, ...more }, after: { subnet: to, ...more } };
  return refusal === undefined ? row : { ...row, refusal: ["spec.subnet", refusal] };
}

const [NEAR, WIDE, SIX] = ["10.6.0.0/24", "10.6.0.0/23", "fd00::/64"];

const SIZES: readonly UpdateRow[] = [
  resized("IPPool", NEAR, WIDE, undefined, { gateway: "10.6.0.1", ips: ["10.6.0.9"] }),
  resized("IPPool", "10.6.1.0/24", WIDE),
  resized("IPPool", SIX, "fd00::/60"),
  ...[
    [WIDE, NEAR],
    [NEAR, "10.7.0.0/24"],
    [NEAR, "10.6.2.0/23"],
    [SIX, "fd00::/65"],
    [NEAR, SIX],
    [SIX, "0.0.0.0/0"],
  ].map(([from = "", to = ""]) => resized("IPPool", from, to, `"${from}", or a network around it`)),
  resized("IPPool", NEAR, WIDE, CANNOT_GROW, { source: { range: "lan" } }),
  resized("IPPool", NEAR, WIDE, undefined, { source: { prefix: NEAR, blockSize: 28 } }),
  resized("IPPool", NEAR, WIDE, CANNOT_GROW, { generated: GENERATED, ips: [] }),
  {
    ...resized("IPPool", "10.6.0.0/31", NEAR, undefined, { gateway: "10.6.0.0" }),
    refusal: ["spec.gateway", `another address than the first and the last one of ${NEAR}`],
  },
  resized("Subnet", NEAR, WIDE, IMMUTABLE),
  resized("Subnet", NEAR, "10.7.0.0/24", IMMUTABLE),
];

function inSpace(addressSpace: string): object {
  return { ...AT, addressSpace };
}

const from = (range?: string): object => ({ subnet: SUBNET, ...(range === undefined ? {} : { source: { range } }) });

const AS_BEFORE =
  "a source as before: only the commands `berthctl blocks adopt` and `leave` change it, with the addresses of its blocks";

const cut = (...ips: string[]): object => ({ subnet: SUBNET, ips });
const BLOCKS = ["10.6.0.16-10.6.0.31", "10.6.0.64-10.6.0.79"];

/** A pool with blocks, which are written as `16/28 Active`; `epoch`: the registry's. */
function leased(blocks: readonly string[], epoch = "e"): object {
  const listed = blocks.map((text) => ({ block: `10.6.0.${text.split(" ")[0]}`, state: text.split(" ")[1] }));
  return { source: { epoch, blocks: listed } };
}

const TWO = leased(["16/28 Active", "64/28 Draining"]);

/** A pool whose addresses change with its source is refused. */
const CHANGES: readonly UpdateRow[] = [
  { title: "blocks in place of the same ranges", before: cut(...BLOCKS), status: TWO, after: from("a") },
  { title: "ranges in place of the same blocks", before: from("a"), status: TWO, after: cut(...BLOCKS) },
  ...[
    { title: "a range without its block", before: cut(...BLOCKS), status: leased(["16/28 Active"]) },
    { title: "a block without its range", before: cut("10.6.0.16-10.6.0.31"), status: TWO },
    { title: "a range beyond its block", before: cut("10.6.0.16-10.6.0.32", "10.6.0.64-10.6.0.79"), status: TWO },
    {
      title: "a range that begins in its block",
      before: cut("10.6.0.17-10.6.0.31", "10.6.0.64-10.6.0.79"),
      status: TWO,
    },
    { title: "single addresses", before: cut("10.6.0.16", "10.6.0.64"), status: TWO },
    { title: "no ranges", before: cut(), status: leased([]) },
    { title: "a block that rests", before: cut(...BLOCKS), status: leased(["16/28 Active", "64/28 Resting"]) },
    { title: "blocks of no registry", before: cut(...BLOCKS), status: leased(["16/28 Active", "64/28 Active"], "") },
  ].flatMap(({ title, before, status }): Omit<UpdateRow, "kind">[] => [
    { title: `blocks, with ${title}`, before, status, after: from("a"), refusal: ["spec.source", AS_BEFORE] },
    { title: `ranges, with ${title}`, before: from("a"), status, after: before, refusal: ["spec.source", AS_BEFORE] },
  ]),
].map((row) => ({ kind: "IPPool", ...row }));

const pool = changes("IPPool");
const SOURCES: readonly UpdateRow[] = [
  ...CHANGES,
  pool("another range", from("a"), from("b"), ["spec.source", IMMUTABLE]),
  pool("a source where there was none", from(), from("a"), ["spec.source", AS_BEFORE]),
  pool("a source no more", from("a"), from(), ["spec.source", AS_BEFORE]),
  pool("a pool with a source", from("a"), { ...from("a"), gateway: "10.6.0.1", disable: true }),
];

/** As agents wrote it that did not write its namespace. */
const OLD_WORKLOAD = { ...WORKLOAD, namespace: undefined };
const cooling = { state: "Cooling", holders: [] };
const retained = { state: "Kept", holders: [], workload: WORKLOAD };
const onN2 = { node: "n2", holders: [{ ...HOLDER, podUID: "u2", node: "n2" }] };

const quarantined = { ...cooling, state: "Quarantined", quarantine: QUARANTINE };
const OF_WEB = { workload: WORKLOAD };
const OF_OLD = { workload: OLD_WORKLOAD };
const webOnN2 = (change: object = {}) => ({ ...onN2, workload: { ...WORKLOAD, ...change } });
const TAKEN: UpdateRow["refusal"] = ["spec.node", TAKE_OVER];
const HELD: UpdateRow["refusal"] = ["spec.holders", "at least one with the state Bound, none with any other state"];

/** Changes of a Bound address of node n1. */
const allocation = changes("IPAllocation");
const ALLOCATIONS: readonly UpdateRow[] = [
  allocation("Bound to Cooling", {}, cooling),
  allocation("Bound to Kept", OF_WEB, retained),
  allocation("Bound to Quarantined", {}, quarantined),
  allocation("Bound to another pod of the node", {}, { holders: [{ ...HOLDER, podUID: "u2" }] }),
  allocation("Cooling, taken over by another node", cooling, onN2),
  allocation("Quarantined, taken over by another node", quarantined, { ...onN2, quarantine: QUARANTINE }),
  allocation("Kept, taken over by its workload on another node", retained, webOnN2()),
  allocation("Bound, taken over by its workload on another node", OF_WEB, webOnN2()),
  allocation("Bound, taken over by another node", {}, onN2, TAKEN),
  allocation("Kept, taken over by another node", retained, onN2, TAKEN),
  allocation("Kept, taken over by another member of the workload", retained, webOnN2({ member: "web-1" }), TAKEN),
  allocation("Bound, taken over by a workload of another UID", OF_WEB, webOnN2({ uid: "w2" }), TAKEN),
  ...[retained, OF_WEB].map((before, at) =>
    allocation(
      `${at === 0 ? "Kept" : "Bound"}, taken over for another namespace's workload of that UID`,
      before,
      webOnN2({ namespace: "evil" }),
      TAKEN,
    ),
  ),
  allocation("Bound by an agent that wrote no namespace, taken over in that of the holder", OF_OLD, webOnN2()),
  allocation(
    "Bound by an agent that wrote no namespace, taken over in another one",
    OF_OLD,
    webOnN2({ namespace: "evil" }),
    TAKEN,
  ),
  allocation("Kept by an agent that wrote no namespace, taken over", { ...retained, ...OF_OLD }, webOnN2(), TAKEN),
  allocation(
    "Bound by an agent that wrote no namespace, taken over without one",
    OF_OLD,
    { ...onN2, ...OF_OLD },
    TAKEN,
  ),
  allocation("another pool", {}, { pool: "green", prefixLength: 24 }),
  allocation("Cooling with a holder", {}, { state: "Cooling" }, HELD),
];

const reserved = changes("ReservedIP");
const RESERVED: readonly UpdateRow[] = [
  reserved("another address space", { ips: ["10.0.0.1"] }, { ips: ["10.0.0.1"], addressSpace: "a" }, [
    "spec.addressSpace",
    IMMUTABLE,
  ]),
  reserved("another family", { ips: ["10.0.0.1"] }, { ips: ["fd00::1"] }),
];

let next = 0;

/** Each with a name and an address of its own. */
export const UPDATE_ROWS: readonly (UpdateRow & { readonly name: string })[] = [
  ...[...ADDRESSES, ...SIZES, ...SOURCES, ...RESERVED].map((row, index) => ({ ...row, name: `row-${index}` })),
  ...ALLOCATIONS.map((row) => {
    const name = `10.10.0.${++next}`;
    return { ...row, name, before: bound(name, { ...row.before }), after: bound(name, { ...row.after }) };
  }),
];
