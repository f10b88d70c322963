import { inject } from "vitest";
import type { PlaneParts } from "../../scripts/lab/cluster/plane-parts.ts";
import { attachControlPlane, type ControlPlane } from "../../scripts/lab/control-plane.ts";

/**
 * A control plane with Berth's kinds, accounts and policies, and nothing else, that other files have used before. `stop` gives it back. Tests that
 * stop its servers, or change kinds, accounts or policies, start one of their own (startPlane).
 */
export async function borrowPlane(): Promise<ControlPlane> {
  const pool = inject("planePool");
  const parts = await ask<PlaneParts>(`${pool}/borrow`);
  return attachControlPlane(
    parts,
    async () => void (await ask(`${pool}/return?${encodeURIComponent(parts.directory)}`)),
  );
}

async function ask<T>(url: string): Promise<T> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`The pool of control planes answered with ${answer.status}: ${await answer.text()}`);
  return answer.json() as Promise<T>;
}
