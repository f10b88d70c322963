import { describe, expect, it } from "vitest";
import { type Evidence, planRecovery } from "../../../../host/agent/embedded/recovery/plan-recovery.ts";
import type { LiveAddress } from "../../../../host/agent/live-namespaces.ts";
import type { CachedAttachment } from "../../../../host/agent/runtime-cache.ts";
import { formatIp } from "../../../../host/net/ip.ts";
import type { Allocation } from "../../../../host/registry/registry.ts";
import { pool } from "../../../world/subjects.ts";
import { ip, prefix } from "../../../world/values.ts";

const POOLS = [
  pool("blue", "10.0.0.0/24"),
  pool("lab", "10.0.0.0/24", { addressSpace: "lab" }),
  pool("red", "10.1.0.0/24"),
];

/** Of container `c`, in namespace `/live/c` or `/dead/c`. */
function cached(containerId: string, address: string, where = "/live"): CachedAttachment {
  const netns = `${where}/${containerId}`;
  const args = new Map([
    ["K8S_POD_NAMESPACE", "shop"],
    ["K8S_POD_NAME", `pod-${containerId}`],
    ["K8S_POD_UID", `uid-${containerId}`],
  ]);
  const ips = [{ address: prefix(address), interface: 0 }];
  const result = { interfaces: [{ name: "eth0", sandbox: netns }], ips, routes: [] };
  return {
    source: `cache/${containerId}`,
    containerId,
    ifName: "eth0",
    network: "lab",
    netns,
    args,
    result,
    ipams: [],
  };
}

function live(netns: string, address: string): LiveAddress {
  return { netns, ifName: "eth0", mac: undefined, prefix: prefix(address) };
}

function row(containerId: string, address: string, netns: string): Allocation {
  const where = { space: "", ip: ip(address), prefixLength: 24, pool: "red", state: "Bound" as const, netns };
  const who = { owner: containerId, ifName: "eth0", containerId, network: "lab", namespace: "", pod: "" };
  return { ...where, ...who, sinceMs: 0, version: 1 };
}

/** Each as `address container`, found ones with their space and source. */
function check(evidence: Partial<Evidence>): Record<string, string[]> {
  const isLive = (path: string): boolean => path.startsWith("/live");
  const nothing = { cached: [], live: [], rows: [] };
  const { found, kept, gone, ignored } = planRecovery({ ...nothing, pools: POOLS, isLive, ...evidence });
  const text = (one: Pick<Allocation, "ip" | "containerId">): string => `${formatIp(one.ip)} ${one.containerId}`;
  return {
    found: found.map((one) => `${text(one)} ${one.pool}/${one.space} ${one.owner} from ${one.source}`),
    kept: kept.map(text),
    gone: gone.map(text),
    ignored: [...ignored],
  };
}

const NOTHING = { found: [], kept: [], gone: [], ignored: [] };

describe("planRecovery", () => {
  const stored = row("a", "10.1.0.5", "/live/a");
  const orphan = row("a", "10.1.0.5", "/dead/a");
  const [inBlue, inRed] = [cached("a", "10.0.0.5/24"), cached("a", "10.1.0.5/24")];
  const OWN = "10.1.0.5 a";
  const ofNic = (address: string) => `${address} netns:/live/b red/ netns:/live/b from /live/b`;
  const rows: [what: string, evidence: Partial<Evidence>, expected: Partial<ReturnType<typeof check>>][] = [
    [
      "takes in what a runtime remembers, once for each address space",
      { cached: [inBlue] },
      { found: ["10.0.0.5 a blue/ uid-a from cache/a", "10.0.0.5 a lab/lab uid-a from cache/a"] },
    ],
    [
      "leaves out what a runtime remembers of a pod that is gone",
      { cached: [cached("a", "10.0.0.5/24", "/dead")] },
      { ignored: ["cache/a belongs to a deleted pod: its namespace /dead/a is gone"] },
    ],
    [
      "leaves out addresses of no pool, and says so",
      { cached: [cached("a", "10.9.0.5/24")], live: [live("/live/b", "10.9.0.6/24")] },
      { ignored: ["cache/a: 10.9.0.5 is in no pool"] },
    ],
    [
      "takes in a NIC's address that nothing else tells",
      { live: [live("/live/b", "10.1.0.6/24")] },
      { found: [ofNic("10.1.0.6")] },
    ],
    [
      "does not take in a NIC's address a second time",
      { cached: [inRed], live: [live("/live/a", "10.1.0.5/24")] },
      { found: ["10.1.0.5 a red/ uid-a from cache/a"] },
    ],
    ["keeps a row of a live namespace", { rows: [stored] }, { kept: [OWN] }],
    ["keeps a row of which no namespace is known", { rows: [{ ...stored, netns: undefined }] }, { kept: [OWN] }],
    ["releases a row of a namespace that is gone", { rows: [orphan] }, { gone: [OWN] }],
    ["keeps the row of what a runtime remembers", { cached: [inRed], rows: [stored] }, { kept: [OWN] }],
    [
      "gives the row of an old copy to the pod that lives",
      { cached: [cached("b", "10.1.0.5/24")], rows: [orphan] },
      { found: ["10.1.0.5 b red/ uid-b from cache/b"] },
    ],
    [
      "gives the row of a pod that is gone to the NIC that has the address",
      { live: [live("/live/b", "10.1.0.5/24")], rows: [orphan] },
      { found: [ofNic("10.1.0.5")] },
    ],
  ];
  it.each(rows)("%s", (_what, evidence, expected) => expect(check(evidence)).toEqual({ ...NOTHING, ...expected }));
});
