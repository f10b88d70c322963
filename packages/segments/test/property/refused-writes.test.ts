/** Leasing blocks on an API server that refuses some of its writes. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { KubeApi } from "../../../../host/kubernetes/kube-api.ts";
import { ADMITS_ALL } from "../../../../test/fakes/admission/admission.ts";
import { MemoryApiServer } from "../../../../test/fakes/memory-api-server.ts";
import { BERTH, fakeTime, refusedKinds, SERVES } from "../../../../test/world/refusing-server.ts";
import { startBlocks } from "../../controllers/blocks-controller.ts";

beforeEach(fakeTime);
afterEach(() => void vi.useRealTimers());

/** A hub that refuses nothing. */
function openHub(): KubeApi {
  const admission = { ...ADMITS_ALL, hasStatus: () => true };
  const hub = new MemoryApiServer({ serves: SERVES, isOpen: true, nowMs: () => Date.now(), admission });
  hub.put(`${BERTH}/addressranges`, "lan", { spec: { subnet: "10.9.0.0/24", blockSize: 28 } });
  const member = { range: "lan", member: "east", user: "east", maxBlocks: 3 };
  hub.put(`${BERTH}/rangemembers`, "lan.east", { spec: member });
  return hub.client();
}

it("each refusal rests", async () => {
  const hub = () => ({ api: openHub(), member: "east", namespace: "kube-system" });
  expect(await refusedKinds((deps) => startBlocks({ ...deps, hub: hub() }))).toBe("PATCH configmaps, PATCH ippools");
}, 60_000);
