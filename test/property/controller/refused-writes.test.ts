/**
 * Every controller on an API server that refuses some of its writes, however long: no object is written more than ten
 * times in the first minute, or more than once in each later one, and no more than ten writes are refused in a second.
 * When the server accepts them, they are made within the longest pause.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { CONTROLLERS } from "../../../host/controller/controllers.ts";
import type { StartController } from "../../../host/controller/types.ts";
import { BERTH, check, fakeTime, MINUTE_MS, play, refusedKinds, VERBS } from "../../world/refusing-server.ts";

beforeEach(fakeTime);
afterEach(() => void vi.useRealTimers());

/** The writes of each in this world. A new controller needs a row. */
const WRITES: Readonly<Record<string, string>> = {
  epoch: "PATCH configmaps",
  networks: "PATCH coordinators",
  machines: "POST ipallocations",
  // The epoch is open.
  fixed: "",
  subnets: "DELETE ippools, PATCH ippools, PATCH subnets, POST ippools",
  usage: "DELETE ippoolusages, PATCH ippools, POST ippoolusages, PUT ippoolusages",
  shares: "PATCH coordinators",
  policies: "",
  settings: "",
  waiting: "",
  conditions: "PATCH ippools, PATCH subnets",
  finalizers: "PATCH ippools",
  claims: "PATCH ipamclaims",
  garbage: "PUT ipallocations",
  notices: "PATCH nodes",
};

it.each(Object.entries(CONTROLLERS))(
  "%s",
  async (name, start) => expect(await refusedKinds(start)).toBe(WRITES[name]),
  60_000,
);

const SUBNETS = CONTROLLERS.subnets as StartController;

it("own writes start no pass", async () => {
  const { passes } = await play(SUBNETS, { verbs: [], status: 403, forMs: 0, hasCoordinator: true, lateMs: 500 });
  // One that writes, and one that finds nothing more to do.
  expect(passes).toBe(2);
});

it("a refusal that passes by itself in a second is no event, and keeps a generated pool waiting for one more", async () => {
  const refusing = { verbs: VERBS, status: 403, forMs: 1_000, hasCoordinator: true, only: /ippools/ } as const;
  const { sent, events } = await play(SUBNETS, refusing);
  const made = sent.find(({ method, path, isRefused }) => method === "PATCH" && /ippools/.test(path) && !isRefused);
  expect(made?.atMs).toBeLessThan(2_500);
  expect(events).toEqual([]);
});

it("a Subnet whose finalizer is refused keeps no pools of others in its network waiting", async () => {
  const refusing = { verbs: VERBS, status: 403, forMs: MINUTE_MS, hasCoordinator: true, only: /\/subnets\/green$/ };
  const { sent } = await play(SUBNETS, refusing, (server, owners) => {
    server.put(`${BERTH}/subnets`, "green", { spec: { subnet: "10.6.0.0/24", ips: ["10.6.0.101-10.6.0.199"] } });
    owners.want("api", "w2", { subnets: ["green"] });
  });
  const filled = sent.flatMap(({ method, path, atMs }) => {
    const [, name] = /\/ippools\/shop-(\w+)/.exec(path) ?? [];
    return method === "PATCH" && name !== undefined ? [`${name} ${atMs < MINUTE_MS}`] : [];
  });
  expect(filled).toEqual(["web true", "api false"]);
});

it("a generated pool that cannot be written has its addresses reserved once, and says why in one event", async () => {
  const forMs = 20 * MINUTE_MS;
  const refusing = { verbs: ["PATCH"], status: 403, forMs, hasCoordinator: true, only: /ippools\// } as const;
  const { sent, events } = await play(SUBNETS, refusing);
  check(sent, refusing);
  const ofSubnet = sent.filter(({ path, atMs }) => path.endsWith("/subnets/blue") && atMs < refusing.forMs);
  // Its finalizer, and its reserved addresses.
  expect(ofSubnet.length).toBe(2);
  const notes = events.filter(({ regarding }) => regarding.kind === "IPPool").map(({ reason, note }) => [reason, note]);
  expect(notes).toEqual([
    ["Refused", "The API server refuses a write of the controller: every object needs the label team"],
  ]);
});
