/** Writing EndpointSlices on an API server that refuses some of the writes. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { fakeTime, refusedKinds } from "../../../../test/world/refusing-server.ts";
import { startServices } from "../../services-controller.ts";

beforeEach(fakeTime);
afterEach(() => void vi.useRealTimers());

it("each refusal rests", async () => expect(await refusedKinds(startServices)).toBe("POST endpointslices"), 60_000);
