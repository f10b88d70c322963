import { inject } from "vitest";
import type { PlaneParts } from "../lab/cluster/plane-parts.ts";
import { attachControlPlane, type ControlPlane } from "../lab/control-plane.ts";

/**
 * A control plane with Berth's kinds, accounts and policies, and nothing else, that other files have used before. Its
 * servers may be stopped, started and restored. `stop` gives it back. Tests that change kinds, accounts or policies,
 * or the servers' options, start one of their own (startPlane).
 */
export async function borrowPlane(): Promise<ControlPlane> {
  const parts = await ask<PlaneParts>("borrow");
  const { directory } = parts;
  return attachControlPlane(parts, {
    act: async (action, copy = "") => (await ask<{ answer: string }>("act", { directory, action, copy })).answer,
    giveBack: async () => void (await ask("return", { directory })),
  });
}

async function ask<T>(path: string, parameters: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(`${inject("planePool")}/${path}?${new URLSearchParams(parameters)}`);
  if (!answer.ok) throw new Error(`The pool of control planes answered with ${answer.status}: ${await answer.text()}`);
  return answer.json() as Promise<T>;
}
