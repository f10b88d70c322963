import { expect, it } from "vitest";
import { watchSocket } from "../../../../host/agent/server/socket-watch.ts";
import { recordLog, until } from "../recorded-log.ts";

it("a socket that cannot be restored is logged once for each reason, and restored as soon as it can be", {
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
    "error Restoring socket /run/a.sock failed; retrying",
    "error Restoring socket /run/a.sock failed; retrying",
    "warn Socket /run/a.sock was removed; restored it, calls in between were lost",
  ]);
});
