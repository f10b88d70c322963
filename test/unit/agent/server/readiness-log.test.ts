import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { logReadiness, READINESS_LOOK_MS } from "../../../../host/agent/server/readiness-log.ts";
import { recordLog } from "../../../world/recorded-log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("each change of readiness, and of its reason, is told once", () => {
  const { log, lines } = recordLog();
  const now = { ready: true, problems: ["a hint"] };
  const end = logReadiness(now, log);
  const pass = (next: typeof now): void => {
    Object.assign(now, next);
    vi.advanceTimersByTime(5 * READINESS_LOOK_MS);
  };
  pass({ ready: true, problems: ["a hint"] });
  pass({ ready: false, problems: ["no directory", "a hint"] });
  pass({ ready: false, problems: ["no directory"] });
  pass({ ready: false, problems: ["a bad file"] });
  pass({ ready: false, problems: [] });
  pass({ ready: true, problems: [] });
  end();
  pass({ ready: false, problems: ["after the end"] });
  expect(lines).toEqual([
    "warn Not ready, so ADDs are refused: no directory",
    "warn Not ready, so ADDs are refused: a bad file",
    "warn Not ready, so ADDs are refused: it is starting",
    "info Ready: ADDs are served",
  ]);
});
