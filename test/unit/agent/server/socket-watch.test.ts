import { expect, it } from "vitest";
import { watchSocket } from "../../../../host/agent/server/socket-watch.ts";
import { recordLog, until } from "../recorded-log.ts";

it("a socket that cannot be restored is told once for each reason, and tried again until it can", {
  timeout: 60_000,
}, async () => {
  const { log, lines } = recordLog();
  const reasons = ["no room", "no room", "no folder"];
  let isLost = true;
  const watch = watchSocket({
    path: "/run/a.sock",
    lock: { ensure: () => undefined },
    server: {
      findLoss: () => (isLost ? "removed" : undefined),
      restore: async () => {
        const reason = reasons.shift();
        if (reason !== undefined) throw new Error(reason);
        isLost = false;
      },
    },
    onDeath: () => {},
    log,
  });
  expect(await until(() => watch.restored === 1)).toBe(true);
  await watch.close();
  expect(lines).toEqual([
    "error Socket /run/a.sock cannot be restored; it is tried again",
    "error Socket /run/a.sock cannot be restored; it is tried again",
    "warn Socket /run/a.sock was removed: it is restored; calls in between did not arrive",
  ]);
});
