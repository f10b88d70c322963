import { describe, expect, it } from "vitest";
import { Backlog, RETRY_FIRST_MS, RETRY_MAX_MS } from "../../../../host/registry/kubernetes/backlog.ts";
import { ip } from "../registry-suite.ts";

const ADDRESS = { space: "", ip: ip("10.0.0.1") };

describe("backlog", () => {
  it("is due at once, and after a failure later each time, up to a limit", () => {
    const backlog = new Backlog(() => 1);
    backlog.add("x", ADDRESS);
    expect(backlog.due(0)).toEqual([ADDRESS]);
    const pauses: number[] = [];
    for (let failure = 0; failure < 8; failure++) {
      backlog.fail("x", ADDRESS, 0);
      backlog.add("x", ADDRESS);
      let nowMs = 0;
      while (backlog.isWaiting("x", nowMs)) nowMs += 500;
      expect(backlog.due(nowMs)).toEqual([ADDRESS]);
      pauses.push(nowMs);
    }
    expect(pauses.slice(0, 3)).toEqual([RETRY_FIRST_MS, RETRY_FIRST_MS * 2, RETRY_FIRST_MS * 4]);
    expect(pauses.at(-1)).toBe(RETRY_MAX_MS);
    backlog.done("x");
    expect([backlog.size, backlog.due(RETRY_MAX_MS)]).toEqual([0, []]);
  });

  it("spreads the pauses down to half", () => {
    const backlog = new Backlog(() => 0);
    backlog.fail("x", ADDRESS, 0);
    expect([backlog.isWaiting("x", RETRY_FIRST_MS / 2 - 1), backlog.isWaiting("x", RETRY_FIRST_MS / 2)]).toEqual([
      true,
      false,
    ]);
  });
});
