/** Removing gates on an API server that refuses some of the writes. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { fakeTime, refusedKinds } from "../../../../test/world/refusing-server.ts";
import { startGates } from "../../gates-controller.ts";

beforeEach(fakeTime);
afterEach(() => void vi.useRealTimers());

it("each refusal rests", async () => expect(await refusedKinds(startGates)).toBe("PATCH pods"), 60_000);
