import { describe, expect, it } from "vitest";
import { foreignOf, specOf } from "../../../../host/registry/kubernetes/known-object.ts";
import type { IpAllocation } from "../../../../host/resources/ip-allocation.ts";
import { CONFLICT } from "../registry-quarantine-suite.ts";
import { proposal } from "../registry-suite.ts";

describe("the object of a row", () => {
  const row = {
    ...{ ...proposal("10.0.0.1"), state: "Bound" as const, owner: "a", containerId: "secret", network: "net" },
    ...{ namespace: "shop", pod: "web-0", sinceMs: 0, version: 1, quarantine: CONFLICT },
    workload: { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", member: "web-0" },
  };
  const place = { node: "here", since: "2026-11-20T04:00:00Z" };

  it("names the owner, and no container", () => {
    const spec = specOf(row, "Bound", place);
    const holder = { namespace: "shop", pod: "web-0", podUid: "a", ifName: "eth0", node: "here" };
    expect(spec).toMatchObject({
      state: "Bound",
      holders: [holder],
      workload: { ...row.workload, ifName: "eth0" },
      ...place,
    });
    expect([spec.quarantine, JSON.stringify({ ...spec, ip: "" }).includes("secret")]).toEqual([undefined, false]);
  });

  it.each([
    ["Cooling" as const, { holders: [], workload: undefined, quarantine: undefined }],
    ["Kept" as const, { holders: [], workload: { ...row.workload, ifName: "eth0" }, quarantine: undefined }],
    ["Quarantined" as const, { holders: [], workload: undefined, quarantine: { reason: "Conflict", mac: CONFLICT.mac, parent: CONFLICT.parent } }], // biome-ignore format: one line each
  ])("in state %s has what belongs to it", (state, expected) => {
    const { holders, workload, quarantine } = specOf(row, state, place);
    expect({ holders, workload, quarantine }).toEqual(expected);
  });

  it("in state Kept names the NIC it is retained for, and the namespace of the workload", () => {
    const spec = specOf(row, "Kept", place);
    const object: IpAllocation = {
      kind: "IPAllocation",
      name: "10.0.0.1",
      uid: "u",
      resourceVersion: "7",
      deleting: false,
      spec,
    };
    expect(foreignOf(object, 0)).toMatchObject({ ifName: "eth0", namespace: "shop", owner: "", version: -7 });
  });
});
