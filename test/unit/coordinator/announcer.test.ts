import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  ANNOUNCE_HOLD_UP_MS,
  ANNOUNCE_INTERVAL_MS,
  ANNOUNCE_QUIET_MS,
  Announcer,
} from "../../../host/coordinator/announcer.ts";
import { ip, mac } from "../../world/values.ts";

/** A link whose namespace does not exist: each attempt to send ends at once, with an error. */
const link = {
  ...{ netnsPath: "/run/netns/berth-never", index: 2, name: "eth0", kind: undefined },
  mac: mac("02:00:00:00:00:01"),
};

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

type Happening = "call" | "cancel" | "end" | "announce again";

/** Announces an address at 0, and then lets things happen: in milliseconds. Checks when it was sent, or tried to. */
async function check(happenings: readonly (readonly [atMs: number, what: Happening])[], sentMs: readonly number[]) {
  const startMs = performance.now();
  const sent: number[] = [];
  using announcer = new Announcer();
  const announce = (): void =>
    announcer.announce("eth0", {
      ...{ link, addresses: [ip("10.6.0.61")] },
      onError: () => sent.push(performance.now() - startMs),
    });
  const actions: Record<Happening, () => void> = {
    call: () => announcer.giveWay(),
    cancel: () => announcer.cancel("eth0"),
    end: () => announcer[Symbol.dispose](),
    "announce again": announce,
  };
  announce();
  for (const [atMs, what] of happenings) {
    await vi.advanceTimersByTimeAsync(atMs - (performance.now() - startMs));
    actions[what]();
  }
  await vi.advanceTimersByTimeAsync(ANNOUNCE_INTERVAL_MS);
  expect(sent).toEqual(sentMs);
}

const calls = Array.from({ length: 20 }, (_, index) => [10 * (index + 1), "call"] as const);
it.each<[what: string, happenings: Parameters<typeof check>[0], sentMs: number[]]>([
  ["is sent soon", [], [ANNOUNCE_QUIET_MS]],
  ["gives way to a call", [[10, "call"]], [10 + ANNOUNCE_QUIET_MS]],
  ["gives way to calls for a bounded time", calls, [ANNOUNCE_QUIET_MS + ANNOUNCE_HOLD_UP_MS]],
  ["is not sent after it was cancelled", [[10, "cancel"]], []],
  ["is sent at once when the agent ends", [[10, "end"]], [10]],
  ["replaces what was to be announced before", [[10, "announce again"]], [10 + ANNOUNCE_QUIET_MS]],
])("%s", (_, happenings, sentMs) => check(happenings, sentMs));
