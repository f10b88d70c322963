/** What keeps a cluster from leasing: its controller's last word in pools, and a hub that answers here. */
import { expect, it } from "vitest";
import { ApiError, ApiUnavailable, type KubeObject } from "../../../../../host/kubernetes/kube-api.ts";
import type { IpPool } from "../../../../../host/resources/ip-pool.ts";
import { NO_REPORT } from "../../../../../host/resources/pool-source.ts";
import { leasingPool } from "../../../../../test/world/leasing-pool.ts";
import { cases } from "../../../../../test/world/rows.ts";
import { findHub } from "../../../cli/find-hub.ts";

const UID = (letter: string) => `${letter.repeat(8)}-1111-4111-8111-111111111111`;
const EPOCH = UID("e");
const [OWN, OTHER] = [UID("a"), UID("b")];

function pool(reason = "", problem = "", heard = ""): IpPool {
  const leasing = leasingPool("lan", "10.6.0.0/24", ["10.6.0.16/28 Active"]);
  const report = { ...NO_REPORT, member: "east", reason, heard };
  return { ...leasing, source: leasing.source && { ...leasing.source, problem, report } };
}

const member = (cluster: string, more: object = {}) => ({ cluster, token: UID("c"), writes: 1, epoch: EPOCH, ...more });

function range(more: { spec?: object; members?: object; restored?: boolean } = {}): KubeObject {
  const members = ["east", "west"].map((name) => ({ name, user: name, maxBlocks: 2 }));
  return {
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "AddressRange", metadata: { name: "seg", uid: UID("d") } },
    spec: { subnet: "10.6.0.0/24", blockSize: 28, members, ...more.spec },
    status: {
      ...{ sequence: 3, epoch: EPOCH, leases: { "10.6.0.16/28": { member: "east", pool: "lan" } } },
      members: { east: member(OWN), ...more.members },
      ...(more.restored === true ? { restored: true } : {}),
    },
  };
}

const answers = (answer: KubeObject | Error) => ({
  ...{ file: "hub.conf" },
  api: { call: async () => (answer instanceof Error ? Promise.reject(answer) : answer) },
});

const found = async (pools: readonly IpPool[], answer?: KubeObject | Error) => {
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
  a newer controller says why ${[pool("Later", "why")]} => error: AddressRange "seg": why
`)("%s: what the controller said", async (_, pools, wanted) =>
  expect(await found(pools)).toEqual(wanted === "nothing" ? [] : [wanted]),
);

const east = (more: object) => range({ members: { east: member(OWN, more) } });
const REFUSAL = new ApiError({ status: 401, reason: "", operation: "GET", message: "no" });
/** `…` stands for any text. */
it.each(cases<KubeObject | Error>`
  answers ${range()} => nothing
  has another subnet ${range({ spec: { subnet: "10.7.0.0/24" } })}
    => error: IPPool "lan" leases nothing: the range's subnet is 10.7.0.0/24, not 10.6.0.0/24
  does not have this cluster ${range({ spec: { members: [] } })}
    => error: the cluster is not in spec.members; it keeps what it has, and leases no more
  knows another by its name ${range({ members: { east: member(OTHER) } })}
    => error: another cluster, bbbbbbbb-…is the member of this name…
  finds it contested ${east({ contested: true })} => error: two clusters act in…
  knows it as gone ${east({ gone: true })} => error: an administrator has declared…
  was restored ${range({ restored: true })}
    => warning: the hub went back in time; nothing is leased until these members have written again: west
  gives it no more ${range({ spec: { members: [{ name: "east", user: "east", maxBlocks: 1 }] } })}
    => warning: this cluster has as many blocks as it may have (spec.members, maxBlocks)
  refuses the token ${REFUSAL} => error: the hub refuses this cluster's token, pods get what is leased already: no
  is of another version ${{ ...range(), spec: { cidr: "10.6.0.0/24" } }}
    => error: the hub has AddressRanges of another version, or none, …AddressRange "seg"…
  does not answer ${new ApiUnavailable("GET", "no route to host")}
    => warning: the hub cannot be asked, pods get what is leased already: no route to host
`)("a hub that %s", async (_, answer, wanted) => {
  const texts = (await found([pool()], answer)).map((text) =>
    text.replace('AddressRange "seg", asked with hub.conf: ', ""),
  );
  const pattern = wanted.split("…").map(RegExp.escape).join(".*");
  expect(texts).toEqual(wanted === "nothing" ? [] : [expect.stringMatching(`^${pattern}$`)]);
});

it("what both say is one finding, and a hub that answers here alone is said to", async () => {
  const away = pool("HubAway", "the hub cannot be asked");
  expect(await found([away], new ApiUnavailable("GET", "no route to host"))).toHaveLength(1);
  expect(await found([away], range())).toEqual([
    'warning: AddressRange "seg": the hub cannot be asked; from here it answers',
  ]);
});

it("what is in the way of a prefix is a finding of its own, and no hub is asked for it", async () => {
  const spec = { source: { prefix: "10.6.0.0/24", blockSize: 28 } };
  const { source, ...leasing } = leasingPool("lan", "10.6.0.0/24", ["10.6.0.16/28 Active"], { spec });
  const report = { ...NO_REPORT, reason: "Forbidden" };
  const pools = [{ ...leasing, source: source && { ...source, problem: "it refuses", report } }];
  const hub = answers(new Error("asked"));
  expect(await findHub({ pools, cluster: OWN, hub })).toEqual([
    {
      ...{ check: "records", level: "error", text: "prefix 10.6.0.0/24: it refuses" },
      remedy: "Put a token into the Secret records.tokenSecret that may view, add, change and delete prefixes",
    },
  ]);
});
