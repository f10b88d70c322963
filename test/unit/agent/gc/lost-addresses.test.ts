import { beforeEach, describe, expect, it } from "vitest";
import { LostAddresses } from "../../../../host/agent/gc/lost-addresses.ts";
import { checkAddresses } from "../../../../host/agent/ipam/plugin.ts";
import type { AttachRequest } from "../../../../host/cni/request.ts";
import type { KubeEvent } from "../../../../host/kubernetes/events.ts";
import type { Allocation, Attachment, Registry } from "../../../../host/registry/registry.ts";
import { PoolTable } from "../../../../host/resources/pools-by-name.ts";
import { recordLog } from "../../../world/recorded-log.ts";
import { rowOf } from "../../../world/search.ts";
import { ip } from "../../../world/values.ts";

const ATTACHMENT = { containerId: "c1", ifName: "eth0" };

const row = (changes: Partial<Allocation> = {}): Allocation => rowOf("10.6.0.21", changes);

const RIVAL = row({ owner: "u2", pod: "db-0", containerId: "", version: -9 });
const TEXT =
  'Address 10.6.0.21 of pool "blue", which pod shop/web-0 has on interface "eth0", is recorded for pod shop/db-0 (UID u2) in the API server; delete one of the two pods';

/** Text for the pod's owner: no UID, with which another tenant could name the rival as its own. */
const BRIEF = TEXT.replace(" (UID u2)", "");

let lost: LostAddresses;
let events: KubeEvent[];
let lines: readonly string[];
beforeEach(() => {
  const recorded = recordLog();
  [events, lines] = [[], recorded.lines];
  lost = new LostAddresses({ events: { emit: (event) => void events.push(event) }, log: recorded.log });
});

/** A registry that has this row, or none. */
function registryOf(now: Allocation | undefined): Pick<Registry, "findAddress" | "findAttachment"> {
  const all = now === undefined ? [] : [now];
  return { findAddress: async () => now, findAttachment: async () => all };
}

describe("recreate: an address that is recorded for another pod", () => {
  it("is reported in the log, as a problem, on the pod and to CHECK, once", () => {
    lost.report(row(), RIVAL);
    lost.report(row(), RIVAL);
    expect([lost.count, lost.problems, lines]).toEqual([1, [TEXT], [`error ${TEXT}`]]);
    expect(events).toEqual([
      {
        regarding: { kind: "Pod", apiVersion: "v1", namespace: "shop", name: "web-0", uid: "u1" },
        ...{ type: "Warning", reason: "AddressLost", action: "Allocate", note: BRIEF },
      },
    ]);
    expect([lost.find(ATTACHMENT), lost.find({ ...ATTACHMENT, ifName: "net1" })]).toEqual([BRIEF, undefined]);
  });

  it("does not name the other pod to the pod's owner when it is in another namespace", () => {
    lost.report(row(), row({ owner: "u2", namespace: "bank", pod: "vault-0", version: -9 }));
    const brief = TEXT.replace("pod shop/db-0 (UID u2)", "a pod of another namespace");
    expect([events[0]?.note, lost.find(ATTACHMENT)]).toEqual([brief, brief]);
    for (const text of [lost.problems[0], lines[0]]) expect(text).toContain("pod bank/vault-0 (UID u2)");
  });

  it("is known by the row's pod and NIC, in whichever sandbox", () => {
    lost.report(row(), RIVAL);
    const others = [{ owner: "u3" }, { ifName: "net1" }, { ip: ip("10.6.0.22") }];
    const rows = [row({ containerId: "c2", version: 8 }), ...others.map(row)];
    expect(rows.map((each) => lost.has(each))).toEqual([true, false, false, false]);
  });

  it("is reported again when yet another pod has it, and when none has", () => {
    lost.report(row(), RIVAL);
    lost.report(row(), row({ owner: "", pod: "", namespace: "", state: "Quarantined" }));
    expect(lost.count).toBe(2);
    expect(lost.problems[0]).toContain("is recorded for no pod (Quarantined) in the API server");
  });

  it.each<[what: string, now: Allocation | undefined, isOurs: boolean, left: number]>([
    ["stays while the pod has it", row(), false, 1],
    ["is forgotten when the pod has let go of it", row({ state: "Cooling" }), false, 0],
    ["is forgotten when another pod has it here", row({ owner: "u3" }), false, 0],
    ["is forgotten with the row", undefined, false, 0],
    ["is forgotten when it is the pod's again", row(), true, 0],
  ])("%s", async (_what, now, isOurs, left) => {
    lost.report(row(), RIVAL);
    await lost.prune(registryOf(now), () => isOurs);
    expect(lost.problems).toHaveLength(left);
  });

  it("follows the pod to a new sandbox", async () => {
    lost.report(row(), RIVAL);
    await lost.prune(registryOf(row({ containerId: "c2" })), () => false);
    expect([lost.find(ATTACHMENT), lost.find({ ...ATTACHMENT, containerId: "c2" })]).toEqual([undefined, BRIEF]);
  });

  it("fails CHECK of the attachment", async () => {
    lost.report(row(), RIVAL);
    const inventory = { registry: registryOf(row()) as Registry, snapshot: { pools: new PoolTable() } };
    const request = { ...ATTACHMENT, netConf: {} } as AttachRequest;
    const lostCluster = { findLoss: (attachment: Attachment) => lost.find(attachment) };
    const check = checkAddresses({ inventory, cluster: lostCluster }, request);
    await expect(check).rejects.toMatchObject({ code: 104, message: BRIEF });
  });
});
