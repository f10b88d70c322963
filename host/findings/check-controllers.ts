/** Whether a controller of the cluster leads, and which are not ready. */
import { documentation } from "../lib/documentation.ts";
import type { Finding } from "../records/finding.ts";
import { error, warning } from "./problem.ts";

export const CONTROLLER_PROBLEMS = {
  noLeader: error(
    "controller",
    "no controller leads: pools of Subnets do not grow, and addresses of lost nodes stay",
    `See ${documentation("runbooks.html#berthnoleader")}`,
  ),
  notReady: warning("controller", "the controller is not ready", "See its events: kubectl describe pod"),
};

export interface Controllers {
  /** "" if none leads; undefined if that may not be read. */
  readonly leader: string | undefined;
  readonly notReady: readonly { readonly namespace: string; readonly name: string; readonly node: string }[];
}

export function* checkControllers({ leader, notReady }: Controllers): Iterable<Finding> {
  if (leader === "") yield CONTROLLER_PROBLEMS.noLeader({});
  for (const { namespace, name: pod, node } of notReady)
    yield CONTROLLER_PROBLEMS.notReady({}, { namespace, pod, node });
}
