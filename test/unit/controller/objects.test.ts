import { expect, it } from "vitest";
import { decodeControlledPool } from "../../../host/controller/objects.ts";

it("the conditions of a pool are beside its status, and not in it", () => {
  const condition = {
    ...{ type: "Ready", status: "True", observedGeneration: 2, lastTransitionTime: "2026-01-01T00:00:00Z" },
    ...{ reason: "AsSpecified", message: "gives addresses" },
  };
  const { status, conditions } = decodeControlledPool({
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", spec: { subnet: "10.6.0.0/24" } },
    metadata: { name: "web", uid: "u-1", resourceVersion: "7", generation: 2 },
    status: { used: 2, conditions: [condition] },
  });
  expect([status, conditions]).toEqual([{ used: 2 }, [condition]]);
});
