import { expect, it } from "vitest";
import { MAX_SERVICE_ADDRESSES } from "../../../../host/controller/claimants.ts";
import { equalIp, formatIp } from "../../../../host/net/ip.ts";
import { allocationName } from "../../../../host/resources/ip-allocation.ts";
import { pool } from "../../../../test/world/subjects.ts";
import { ip } from "../../../../test/world/values.ts";
import { planAddress } from "../../plan-address.ts";
import { type BalancedService, CLASS, readBalanced } from "../../service.ts";

const BLUE = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.5-10.6.0.7"] } as never);

interface Given {
  readonly annotations?: Record<string, string>;
  readonly ingress?: string[];
  readonly ports?: number[];
  readonly spec?: object;
}

const service = (
  name: string,
  { annotations = {}, ingress = [], ports = [80], spec = {} }: Given = {},
): BalancedService =>
  readBalanced({
    metadata: { namespace: "shop", name, uid: name, resourceVersion: "1", annotations },
    spec: {
      type: "LoadBalancer",
      loadBalancerClass: CLASS,
      ipFamilies: ["IPv4"],
      ports: ports.map((port) => ({ port })),
      ...spec,
    },
    status: { loadBalancer: { ingress: ingress.map((text) => ({ ip: text })) } },
  }) ?? expect.fail("not of the class");

const record = (address: string, uid: string, namespace = "shop") => ({
  ...{ ip: ip(address), addressSpace: "" },
  workload: { kind: "Service", namespace, name: uid, uid, member: uid },
});

/** `taken`: of pods. */
function worldOf(
  world: Partial<Parameters<typeof planAddress>[3]> & { taken?: string[]; claimed?: string[]; mac?: string },
): Parameters<typeof planAddress>[3] {
  const { records = [], services = [], taken = [], claimed = [], first, mac } = world;
  const names = [...records.map(({ ip }) => allocationName(ip, "")), ...taken];
  return {
    ...{ records, services, first },
    isTaken: (name) => names.includes(name),
    macOf: (name) => (name === mac ? "aa:bb:cc:00:00:01" : undefined),
    exclusionOf: ({ spec }, each) =>
      spec.ranges.some(({ first, last }) => first.value <= each.value && each.value <= last.value)
        ? undefined
        : "it is outside",
    isClaimed: (each) => claimed.some((text) => equalIp(ip(text), each)),
  };
}

const SHARED = { annotations: { "ipam.vendor.io/sharing-key": "web" } };
const LOCAL = { externalTrafficPolicy: "Local" };
const DUAL = { ipFamilies: ["IPv6", "IPv4"] };
const FIXED = { annotations: { "ipam.vendor.io/ips": "10.6.0.6" } };
const many = Array.from({ length: MAX_SERVICE_ADDRESSES }, (_, at) => record(`10.7.0.${at}`, `s${at}`));

it.each<[string, BalancedService, Parameters<typeof worldOf>[0], string]>([
  ["gets the last free address", service("a"), {}, "claim 10.6.0.7"],
  [
    "passes over what has a record, and what another says",
    service("a"),
    { taken: ["10.6.0.7"], claimed: ["10.6.0.6"] },
    "claim 10.6.0.5",
  ],
  ["keeps the one that it has a record of", service("a"), { records: [record("10.6.0.5", "a")] }, "held 10.6.0.5"],
  [
    "of two records keeps the one that its status has",
    service("a", { ingress: ["10.6.0.6"] }),
    { records: [record("10.6.0.5", "a"), record("10.6.0.6", "a")] },
    "held 10.6.0.6",
  ],
  ["records what its status has", service("a", { ingress: ["10.6.0.5"] }), {}, "claim 10.6.0.5"],
  [
    "gets another one if a pod has it",
    service("a", { ingress: ["10.6.0.7"] }),
    { taken: ["10.6.0.7"] },
    "claim 10.6.0.6",
  ],
  [
    "gets another one if no pool gives it",
    service("a", { ingress: ["10.6.0.9"] }),
    { records: [record("10.6.0.9", "a")] },
    "claim 10.6.0.7",
  ],
  ["gets the address that it asks for", service("a", FIXED), { records: [record("10.6.0.5", "a")] }, "claim 10.6.0.6"],
  [
    "is refused one that is in use",
    service("a", FIXED),
    { taken: ["10.6.0.6"] },
    'InUse annotation "ipam.vendor.io/ips": 10.6.0.6 is in use',
  ],
  [
    "is refused one for which a machine answers",
    service("a", FIXED),
    { taken: ["10.6.0.6"], mac: "10.6.0.6" },
    'InUse annotation "ipam.vendor.io/ips": 10.6.0.6 is in use, aa:bb:cc:00:00:01 answers for it; "kubectl',
  ],
  [
    "is refused one that no pool gives",
    service("a", { annotations: { "ipam.vendor.io/ips": "10.6.0.9" } }),
    {},
    'NotOfPool annotation "ipam.vendor.io/ips": 10.6.0.9: pool "blue" may not give it: it is outside',
  ],
  [
    "is refused where none is free",
    service("a"),
    { taken: ["10.6.0.5", "10.6.0.6", "10.6.0.7"] },
    'NoRoom No address is free in pool "blue"',
  ],
  [
    "is refused beyond what a namespace has",
    service("a"),
    { records: many },
    `TooMany Services of namespace shop have ${MAX_SERVICE_ADDRESSES} addresses`,
  ],
  [
    "shares by the key, also before the other's status says it",
    service("b", { ...SHARED, ports: [443] }),
    { services: [service("a", SHARED)], records: [record("10.6.0.5", "a")] },
    "held 10.6.0.5",
  ],
  [
    "shares no port",
    service("b", SHARED),
    { services: [service("a", SHARED)], records: [record("10.6.0.5", "a")] },
    "claim 10.6.0.7",
  ],
  [
    "whose traffic stays on the node shares with those of the same pods",
    service("b", { ...SHARED, ports: [443], spec: { ...LOCAL, selector: { app: "a" } } }),
    {
      services: [service("a", { ...SHARED, spec: { ...LOCAL, selector: { app: "a" } } })],
      records: [record("10.6.0.5", "a")],
    },
    "held 10.6.0.5",
  ],
  [
    "whose traffic stays on the node shares with no others",
    service("b", { ...SHARED, ports: [443], spec: LOCAL }),
    { services: [service("a", SHARED)], records: [record("10.6.0.5", "a")] },
    "claim 10.6.0.7",
  ],
  [
    "shares with none whose first address is of another family",
    service("b", { ...SHARED, ports: [443] }),
    { services: [service("a", { ...SHARED, spec: DUAL })], records: [record("10.6.0.5", "a")] },
    "claim 10.6.0.7",
  ],
  [
    "shares the second address with none that has another first one",
    service("b", { ...SHARED, ports: [443], spec: DUAL }),
    {
      services: [service("a", { ...SHARED, spec: DUAL })],
      records: [record("10.6.0.5", "a"), record("fd06::5", "a")],
      first: ip("fd06::6"),
    },
    "claim 10.6.0.7",
  ],
  [
    "shares the second address with one that it shares the first with",
    service("b", { ...SHARED, ports: [443], spec: DUAL }),
    {
      services: [service("a", { ...SHARED, spec: DUAL })],
      records: [record("10.6.0.5", "a"), record("fd06::5", "a")],
      first: ip("fd06::5"),
    },
    "held 10.6.0.5",
  ],
  [
    "shares with all that have it, or not",
    service("c", { ...SHARED, ports: [443] }),
    {
      services: [service("a", SHARED), service("b", { ports: [1], ingress: ["10.6.0.5"] })],
      records: [record("10.6.0.5", "a")],
    },
    "claim 10.6.0.7",
  ],
  [
    "keeps what it shared with one that is gone",
    service("b", { ...SHARED, ingress: ["10.6.0.5"] }),
    { services: [service("b", SHARED)], records: [record("10.6.0.5", "a")] },
    "held 10.6.0.5",
  ],
  [
    "of another namespace has no part in it",
    service("b", { ...SHARED, ports: [443], ingress: ["10.6.0.5"] }),
    { records: [record("10.6.0.5", "a", "evil")] },
    "claim 10.6.0.7",
  ],
])("a Service %s", (_, given, world, wanted) => {
  const found = planAddress(given, 4, [BLUE], worldOf(world));
  const text = found.kind === "refused" ? `${found.reason} ${found.message}` : `${found.kind} ${formatIp(found.ip)}`;
  expect(text.slice(0, wanted.length)).toBe(wanted);
});

it.each<[string, object, object | undefined]>([
  ["of another class is none", { spec: { loadBalancerClass: "other" } }, undefined],
  ["of another type is none", { spec: { type: "ClusterIP" } }, undefined],
  [
    "has its families in their order",
    { spec: { ipFamilies: ["IPv6", "IPv4"], ipFamilyPolicy: "RequireDualStack" } },
    { families: [6, 4], needsAll: true },
  ],
  [
    "asks for an address of each family",
    { ips: "fd00::5, 10.6.0.5" },
    {
      requested: { 4: "10.6.0.5", 6: "fd00::5" },
    },
  ],
  ["asks for two of one family", { ips: "10.6.0.5,10.6.0.6" }, { requested: undefined }],
  ["asks for no address", { ips: "front" }, { requested: undefined }],
])("a Service %s", (_, { spec = {}, ips }: { spec?: object; ips?: string }, wanted) => {
  const metadata = { namespace: "shop", name: "a", uid: "a", resourceVersion: "1" };
  const annotations = ips === undefined ? {} : { "ipam.vendor.io/ips": ips };
  const found = readBalanced({
    metadata: { ...metadata, annotations },
    spec: { type: "LoadBalancer", loadBalancerClass: CLASS, ...spec },
  });
  if (wanted === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject(wanted);
});
