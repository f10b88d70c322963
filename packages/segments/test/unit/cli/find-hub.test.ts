/** The obstacles to leasing: the controller's last report in pools, and a hub that answers here. */
import { expect, it } from "vitest";
import { error } from "../../../../../host/findings/problem.ts";
import { ApiError, ApiUnavailable, type KubeObject } from "../../../../../host/kubernetes/kube-api.ts";
import type { IpPool } from "../../../../../host/resources/ip-pool.ts";
import { NO_REPORT } from "../../../../../host/resources/pool-source.ts";
import { leasingPool } from "../../../../../test/world/leasing-pool.ts";
import { cases } from "../../../../../test/world/rows.ts";
import { findHub } from "../../../cli/find-hub.ts";

const UID = (letter: string) => `${letter.repeat(8)}-1111-4111-8111-111111111111`;
const [OWN, OTHER] = [UID("a"), UID("b")];

function pool(reason = "", problem = "", heard = ""): IpPool {
  const leasing = leasingPool("lan", "10.6.0.0/24", ["10.6.0.16/28 Active"]);
  const report = { ...NO_REPORT, member: "east", reason, heard };
  return { ...leasing, source: leasing.source && { ...leasing.source, problem, report } };
}

const STATUS = {
  ...{ cluster: OWN, token: UID("c"), writes: 1 },
  blocks: { "10.6.0.16/28": { pool: "lan", request: UID("e"), since: "2026-11-27T00:00:00Z" } },
};

/** Ranges and members as two lists. */
type Answer = readonly [range: KubeObject, ...members: readonly KubeObject[]];

function range(more: { spec?: object; status?: object; maxBlocks?: number; isMember?: boolean } = {}): Answer {
  const of = (kind: string, name: string) => ({
    ...{ apiVersion: "ipam.vendor.io/v1", kind, metadata: { name, uid: UID("d"), resourceVersion: "1" } },
  });
  const { maxBlocks = 2, isMember = true } = more;
  const member = {
    ...of("RangeMember", "seg.east"),
    ...{ spec: { range: "seg", member: "east", user: "east", maxBlocks }, status: { ...STATUS, ...more.status } },
  };
  const spec = { subnet: "10.6.0.0/24", blockSize: 28, ...more.spec };
  return [{ ...of("AddressRange", "seg"), spec }, ...(isMember ? [member] : [])];
}

const answers = (answer: Answer | Error) => ({
  ...{ file: "hub.conf" },
  api: {
    call: async ({ path }: { readonly path: string }) => {
      if (answer instanceof Error) throw answer;
      const [first, ...members] = answer;
      return { items: path.endsWith("addressranges") ? [first] : members } as KubeObject;
    },
  },
});

const found = async (pools: readonly IpPool[], answer?: Answer | Error) => {
  const hub = answer && answers(answer);
  const findings = await findHub({ pools, cluster: OWN, hub });
  return findings.map(({ level, text, remedy }) => {
    expect(remedy).toMatch(/^[A-Z].*[^.]$/);
    return `${level}: ${text}`;
  });
};

it.each(cases<readonly IpPool[]>`
  all is well ${[pool()]} => nothing
  its hub is away ${[pool("HubAway", "the hub cannot be asked", "2026-11-27T00:00:00Z")]}
    => warning: AddressRange "seg": the hub cannot be asked; it answered last at 2026-11-27T00:00:00Z
  another has its name ${[pool(), pool("OtherCluster", "another cluster")]}
    => error: AddressRange "seg": another cluster
  a pool has another subnet ${[pool("OtherSubnet", "its subnet 10.6.0.0/24 is not that of the range")]}
    => error: IPPool "lan" leases nothing: its subnet 10.6.0.0/24 is not that of the range
  a newer controller says why ${[pool("Later", "why")]} => error: AddressRange "seg": why
`)("%s: the controller's words", async (_, pools, wanted) =>
  expect(await found(pools)).toEqual(wanted === "nothing" ? [] : [wanted]),
);

const REFUSAL = new ApiError({ status: 401, reason: "", operation: "GET", message: "no" });
/** `…` stands for any text. */
it.each(cases<Answer | Error>`
  answers ${range()} => nothing
  has another subnet ${range({ spec: { subnet: "10.7.0.0/24" } })}
    => error: IPPool "lan" leases nothing: the range's subnet is 10.7.0.0/24, not 10.6.0.0/24
  does not have this cluster ${range({ isMember: false })} => error: the hub has no RangeMember of this cluster, pods get what is leased already
  knows another by its name ${range({ status: { cluster: OTHER } })}
    => error: another cluster, bbbbbbbb-…is the member of this name…
  finds it contested ${range({ status: { contested: true } })} => error: two clusters act in…
  gives it no more ${range({ maxBlocks: 1 })}
    => warning: this cluster has as many blocks as it may have (maxBlocks)
  refuses the token ${REFUSAL} => error: the hub refuses this cluster's token, pods get what is leased already: no
  is of another version ${range({ spec: { cidr: "10.6.0.0/24" } })}
    => error: the hub has AddressRanges of another version, or none, …cidr…
  does not answer ${new ApiUnavailable("GET", "no route to host")}
    => warning: the hub cannot be asked, pods get what is leased already: no route to host
`)("a hub that %s", async (_, answer, wanted) => {
  const texts = (await found([pool()], answer)).map((text) =>
    text.replace('AddressRange "seg", asked with hub.conf: ', ""),
  );
  const pattern = wanted.split("…").map(RegExp.escape).join(".*");
  expect(texts).toEqual(wanted === "nothing" ? [] : [expect.stringMatching(`^${pattern}$`)]);
});

it("a problem of both is one finding, and a hub that answers here alone is said to", async () => {
  const away = pool("HubAway", "the hub cannot be asked");
  expect(await found([away], new ApiUnavailable("GET", "no route to host"))).toHaveLength(1);
  expect(await found([away], range())).toEqual([
    'warning: AddressRange "seg": the hub cannot be asked; from here it answers',
  ]);
});

it("an obstacle of a prefix is a finding of its own, and no hub is asked for it", async () => {
  const spec = { source: { prefix: "10.6.0.0/24", blockSize: 28 } };
  const { source, ...leasing } = leasingPool("lan", "10.6.0.0/24", ["10.6.0.16/28 Active"], { spec });
  const report = { ...NO_REPORT, reason: "Forbidden" };
  const pools = [{ ...leasing, source: source && { ...source, problem: "it refuses", report } }];
  const hub = answers(new Error("asked"));
  const remedy = "Put a token into the Secret records.tokenSecret that may view, add, change and delete prefixes";
  expect(await findHub({ pools, cluster: OWN, hub })).toEqual([
    error("Forbidden", "prefix 10.6.0.0/24: it refuses", remedy)({}),
  ]);
});
