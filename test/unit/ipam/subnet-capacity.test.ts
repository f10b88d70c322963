import { expect, it } from "vitest";
import type { Candidate, FamilyDemand } from "../../../host/ipam/model.ts";
import {
  describeObstacle,
  describeSupply,
  isGrowing,
  PoolShortage,
  refuseUnsupplied,
  type SubnetState,
} from "../../../host/ipam/subnet-capacity.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { NO_REPORT } from "../../../host/resources/pool-source.ts";
import { leasingPool } from "../../world/leasing-pool.ts";
import { cases } from "../../world/rows.ts";
import { pool } from "../../world/subjects.ts";

const WEB = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "u-web" };
const made = (ips: readonly string[], wanted: number, shortfall?: string): IpPool => {
  const generated = { subnet: "blue", application: WEB, interface: "eth0", reclaim: true, wanted, reason: "as many" };
  return { ...pool("p", "10.1.0.0/24", { ips, generated }), ...(shortfall === undefined ? {} : { shortfall }) };
};
const FULL = 'has 1 of 3 addresses wanted: Subnet "blue" has 0 free';
const leasing = (reason: string): IpPool => {
  const given = leasingPool("p", "10.1.0.0/24", ["10.1.0.16/28 Active"], { shortfall: "why" });
  const others = ["south", "west"].map((member, at) => ({ member, blocks: at + 1, ranges: [] }));
  return { ...given, source: given.source && { ...given.source, report: { ...NO_REPORT, reason, others } } };
};
const demandOf = (...candidates: readonly Candidate[]): FamilyDemand => {
  const generated = { application: WEB, ifName: "eth0", family: 4 as const, subnets: ["blue", "red"] };
  return { family: 4, rule: "IPv4", candidates, generated } as unknown as FamilyDemand;
};

it.each(cases<IpPool>`
  made by hand ${pool("p", "10.1.0.0/24")} => nothing
  with too few addresses ${made(["10.1.0.1"], 3)} => has 1 of 3 addresses wanted (as many)
  with all of them ${made(["10.1.0.1-10.1.0.3"], 3)} => has 3 of 3 addresses wanted (as many)
  for one pod ${made([], 1)} => has 0 of 1 address wanted (as many)
  that gets no more ${made(["10.1.0.1"], 3, FULL)} => has 1 of 3 addresses wanted: Subnet "blue" has 0 free
  that got more meanwhile ${made(["10.1.0.1-10.1.0.3"], 3, FULL)} => has 3 of 3 addresses wanted (as many)
  that leases ${leasing("")} => takes its blocks from AddressRange "seg": why
  whose share is used up ${leasing("ShareUsedUp")}
    => takes its blocks from AddressRange "seg": why; the pool has 1, other clusters: south 1, west 2
`)("the supply of a pool %s", (_, given, text) => expect(describeSupply(given) ?? "nothing").toBe(text));

const few = made(["10.1.0.1"], 3);
it.each<[what: string, candidates: readonly Candidate[], wanted: boolean]>([
  ["to a pool that has too few", [{ name: "p", pool: few }], true],
  ["not to one that has all", [{ name: "p", pool: made(["10.1.0.1-10.1.0.3"], 3) }], false],
  ["not to one of which the reason is known", [{ name: "p", pool: made(["10.1.0.1"], 3, FULL) }], false],
  ["not to one that refuses the NIC", [{ name: "p", pool: few, refusal: "is not for it" } as Candidate], false],
  ["not to one that is not there", [{ name: "p", refusal: "does not exist" } as Candidate], false],
  ["to the second of two", [made([], 0), few].map((each) => ({ name: each.name, pool: each })), true],
  ["not to one that was made by hand", [{ name: "p", pool: pool("p", "10.1.0.0/24", { ips: [] }) }], false],
  ["not without a pool", [], false],
])("more addresses may come: %s", (_, candidates, wanted) => expect(isGrowing(demandOf(...candidates))).toBe(wanted));

const THERE = 'Subnet "blue" is there, and the controller has not made one';
it.each<[state: SubnetState | undefined, text: string]>([
  [undefined, 'Subnet "blue" was not read'],
  [{ kind: "unseen", why: "the API server is silent" }, "the API server is silent"],
  [{ kind: "absent" }, 'Subnet "blue" does not exist'],
  [{ kind: "there", family: 6, isDeleting: true }, 'Subnet "blue" is being deleted'],
  [{ kind: "there", family: 6, isDeleting: false }, 'Subnet "blue" is an IPv6 Subnet, not IPv4'],
  [{ kind: "there", family: 4, isDeleting: false, refusal: "is not for lab" }, 'Subnet "blue" is not for lab'],
  [{ kind: "there", family: 4, isDeleting: false }, `${THERE}; see whether berth-controller runs`],
])("there is no pool: %j", (state, text) => expect(describeObstacle(demandOf(), state)).toBe(text));

it.each<[what: string, candidates: readonly Candidate[], why: string]>([
  ["that has yet to be generated", [], 'Subnet "blue" does not exist'],
  ["that has yet to grow", [{ name: "p", pool: made(["10.1.0.1"], 3) }], "no more have come within 5 s"],
])(
  "an ADD that has waited for a pool %s is to be tried again, and the log has the names of other namespaces",
  (_, candidates, why) => {
    const about = { ifName: "eth0", demand: demandOf(...candidates), details: "eth0: by the test" };
    const shortage = new PoolShortage(101, "No address is free", { ...about, forLog: "No address for lab/x" });
    expect(refuseUnsupplied(shortage, 5_000, { kind: "absent" })).toMatchObject({
      ...{ code: 11, message: `No address is free: ${why}`, details: "eth0: by the test" },
      forLog: `No address for lab/x: ${why}`,
    });
  },
);
