import { expect, it } from "vitest";
import { MAX_SERVICE_ADDRESSES } from "../../../../host/controller/claimants.ts";
import { rangesContain } from "../../../../host/core/spans.ts";
import { equalIp, formatIp } from "../../../../host/net/ip.ts";
import { allocationName } from "../../../../host/resources/ip-allocation.ts";
import { cases } from "../../../../test/world/rows.ts";
import { pool } from "../../../../test/world/subjects.ts";
import { ip } from "../../../../test/world/values.ts";
import { keptBy, planAddress } from "../../plan-address.ts";
import { type BalancedService, CLASS, readBalanced } from "../../service.ts";

const BLUE = pool("blue", "10.6.0.0/24", { ips: ["10.6.0.5-10.6.0.8"], excludeIPs: ["10.6.0.8"] } as never);

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
      rangesContain(spec.ranges, each) && !rangesContain(spec.excluded, each) ? undefined : "it is outside",
    isClaimed: (each) => {
      expect(rangesContain(BLUE.spec.excluded, each), "asked of each excluded one it takes seconds").toBe(false);
      return claimed.some((text) => equalIp(ip(text), each));
    },
  };
}

const SHARED = { annotations: { "ipam.vendor.io/sharing-key": "web" } };
const DUAL = { spec: { ipFamilies: ["IPv6", "IPv4"] } };
const LOCAL = { spec: { externalTrafficPolicy: "Local" } };
const LOCAL_A = { spec: { ...LOCAL.spec, selector: { app: "a" } } };
const asking = (ips: string): Given => ({ annotations: { "ipam.vendor.io/ips": ips } });
const FIXED = asking("10.6.0.6");
const MANY = Array.from({ length: MAX_SERVICE_ADDRESSES }, (_, at) => record(`10.7.0.${at}`, `s${at}`));
const ALL = ["10.6.0.5", "10.6.0.6", "10.6.0.7"];
const FIVE = record("10.6.0.5", "a");
const own = (address: string) => record(address, "me");
const TOLD = { ingress: ["10.6.0.5"], ports: [443] };
const EVIL = record("10.6.0.5", "a", "evil");

/** Its port is not that of service "a" with the key, which has 10.6.0.5. */
const sharing = (given: Given = {}, other: Given = given) => ({
  ...{ ...SHARED, ports: [443], records: [FIVE], services: [service("a", { ...SHARED, ...other })], ...given },
});

const second = (first: string) => ({ ...sharing(DUAL), records: [FIVE, record("fd06::5", "a")], first: ip(first) });

it.each(cases<Given & Parameters<typeof worldOf>[0]>`
  gets the last free address ${{}} => claim 10.6.0.7
  passes over what has a record, and what another says ${{ taken: ["10.6.0.7"], claimed: ["10.6.0.6"] }}
    => claim 10.6.0.5
  keeps the one that it has a record of ${{ records: [own("10.6.0.5")] }} => held 10.6.0.5
  of two records keeps the one that its status has ${{ ...TOLD, records: [own("10.6.0.7"), own("10.6.0.5")] }}
    => held 10.6.0.5
  records what its status has ${{ ingress: ["10.6.0.5"] }} => claim 10.6.0.5
  gets another one if a pod has it ${{ ingress: ["10.6.0.7"], taken: ["10.6.0.7"] }} => claim 10.6.0.6
  gets another one if no pool gives it ${{ ingress: ["10.6.0.9"], records: [own("10.6.0.9")] }} => claim 10.6.0.7
  gets the address that it asks for ${{ ...FIXED, records: [own("10.6.0.5")] }} => claim 10.6.0.6
  is refused one that is in use ${{ ...FIXED, taken: ["10.6.0.6"] }}
    => InUse annotation "ipam.vendor.io/ips": 10.6.0.6 is in use
  is refused one for which a machine answers ${{ ...FIXED, taken: ["10.6.0.6"], mac: "10.6.0.6" }}
    => InUse annotation "ipam.vendor.io/ips": 10.6.0.6 is in use, aa:bb:cc:00:00:01 answers for it;
  is refused one that another says that it has ${{ ...FIXED, claimed: ["10.6.0.6"] }} => InUse
  is refused one that no pool gives ${asking("10.6.0.9")}
    => NotOfPool annotation "ipam.vendor.io/ips": 10.6.0.9: pool "blue" may not give it: it is outside
  is refused where none is free ${{ taken: ALL }} => NoRoom No address is free in pool "blue"
  is refused beyond what a namespace has ${{ records: MANY }} => TooMany Services of namespace shop have 32 addresses
  shares by the key, also before the other's status says it ${sharing()} => held 10.6.0.5
  shares no port ${sharing({ ports: [80] }, {})} => claim 10.6.0.7
  whose traffic stays on the node shares with those of the same pods ${sharing(LOCAL_A)} => held 10.6.0.5
  whose traffic stays on the node shares with no others ${sharing(LOCAL, {})} => claim 10.6.0.7
  shares with none whose first address is of another family ${sharing({}, DUAL)} => claim 10.6.0.7
  shares the second address with none that has another first one ${second("fd06::6")} => claim 10.6.0.7
  shares the second address with one that it shares the first with ${second("fd06::5")} => held 10.6.0.5
  shares with all that have it, or not ${{ ...sharing(), services: [service("a", SHARED), service("b", TOLD)] }}
    => claim 10.6.0.7
  keeps what it shared with one that is gone ${{ ...SHARED, ...TOLD, records: [FIVE], services: [] }} => held 10.6.0.5
  of another namespace has no part in it ${{ ...SHARED, ...TOLD, records: [EVIL] }} => claim 10.6.0.7
`)("a Service %s", (_, given, wanted) => {
  const found = planAddress(service("me", given), 4, [BLUE], worldOf(given));
  const text = found.kind === "refused" ? `${found.reason} ${found.message}` : `${found.kind} ${formatIp(found.ip)}`;
  expect(text.slice(0, wanted.length)).toBe(wanted);
});

it.each(cases<Given & Parameters<typeof worldOf>[0]>`
  its own ${{ ...TOLD, records: [own("10.6.0.5")] }} => 10.6.0.5
  one that it shares ${{ ...sharing(), ...TOLD }} => 10.6.0.5
  one of a Service that is gone ${{ ...TOLD, records: [FIVE] }} => 10.6.0.5
  not one that another has by now ${{ ...TOLD, records: [FIVE], services: [service("a")] }} => nothing
`)("a Service that is refused another address keeps %s", (_, given, wanted) => {
  expect(keptBy(service("me", given), worldOf(given)).map(formatIp).join() || "nothing").toBe(wanted);
});

it.each<[string, object, object | undefined]>([
  ["of another class is none", { spec: { loadBalancerClass: "other" } }, undefined],
  [
    "has its families in their order",
    { spec: { ipFamilies: ["IPv6", "IPv4"], ipFamilyPolicy: "RequireDualStack" } },
    { families: [6, 4], needsAll: true },
  ],
  ["asks for an address of each family", { ips: "fd00::5, 10.6.0.5" }, { requested: { 4: "10.6.0.5", 6: "fd00::5" } }],
  ["asks for one of another family only", { ips: "fd00::5", spec: { ipFamilies: ["IPv4"] } }, { requested: undefined }],
  ["asks for two of one family", { ips: "10.6.0.5,10.6.0.6" }, { requested: undefined }],
])("a Service %s", (_, { spec = {}, ips }: { spec?: object; ips?: string }, wanted) => {
  const metadata = { namespace: "shop", name: "a", uid: "a", resourceVersion: "1" };
  const annotations = ips === undefined ? {} : { "ipam.vendor.io/ips": ips };
  const found = readBalanced({
    metadata: { ...metadata, annotations },
    spec: { type: "LoadBalancer", loadBalancerClass: CLASS, ipFamilies: ["IPv4", "IPv6"], ...spec },
  });
  if (wanted === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject(wanted);
});
