/** The reports of the collection: events on nodes and pools, and problems. */

import type { KubeEvent } from "../../kubernetes/events.ts";
import { listSome } from "../../lib/describe.ts";
import { compareText } from "../../lib/order.ts";
import { formatIp } from "../../net/ip.ts";
import { API_VERSION } from "../../resources/fields/metadata.ts";
import type { IpAllocation } from "../../resources/ip-allocation.ts";
import { OUT_OF_SERVICE } from "../../resources/node.ts";
import type { Caches, ControllerDeps } from "../types.ts";
import { type Collected, placeOf, stateOf } from "./check-allocation.ts";
import { MAX_NAMED_ADDRESSES } from "./check-history.ts";
import type { Action } from "./plan-collection.ts";

const EVENTS: Partial<Readonly<Record<Action, Pick<KubeEvent, "reason" | "type"> & { readonly verb: string }>>> = {
  quarantine: { reason: "NodeLost", type: "Warning", verb: "in quarantine" },
  free: { reason: "AddressesFreed", type: "Normal", verb: "free" },
  preserve: { reason: "AddressesKept", type: "Normal", verb: "kept" },
  cool: { reason: "AddressesReleased", type: "Normal", verb: "no longer kept" },
};

/** Sends one event per node, pool and reason, and for a lost node another one on the node itself. */
export function sendEvents(
  { events, caches }: Pick<ControllerDeps, "events" | "caches">,
  collected: readonly Collected[],
): void {
  const groups = Map.groupBy(collected, ({ action, node, why, object }) =>
    JSON.stringify([action, node, object.spec.pool, why]),
  );
  for (const group of groups.values()) {
    const [first] = group;
    const template = first === undefined ? undefined : EVENTS[first.action];
    if (first === undefined || template === undefined) continue;
    const { reason, type, verb } = template;
    const { pool } = first.object.spec;
    const names = group.map(({ object }) => formatIp(object.spec.ip));
    const what = names.length === 1 ? "Address" : `${names.length} addresses:`;
    const of = `${what} ${listSome(names, MAX_NAMED_ADDRESSES)} of pool "${pool}"`;
    const note = `${of}: ${verb} (node ${first.node}: ${first.why})`;
    const known = caches.pools.items.get(pool);
    const event = { reason, type, action: "Collect", note };
    const regarding = { kind: "IPPool", apiVersion: API_VERSION, namespace: "", name: pool };
    events.emit({ ...event, regarding: { ...regarding, uid: known?.uid ?? "" } });
    if (first.action !== "quarantine") continue;
    // Like the kubelet's events, it has the node's name in place of a UID: the object may be gone.
    events.emit({
      ...event,
      regarding: { kind: "Node", apiVersion: "v1", namespace: "", name: first.node, uid: first.node },
    });
  }
}

/** Stands for the number of addresses in a sentence. */
const MANY = "{many}";

/** Findings of a sweep that last until an administrator acts. */
export class SweepProblems {
  /** Numbers of addresses, by sentence. */
  readonly #counts = new Map<string, number>();

  /** Allocations of a deleted pool are legal. */
  add(object: IpAllocation, { nodes, pools }: Pick<Caches, "nodes" | "pools">): void {
    const { node, machine } = placeOf(object);
    const state = stateOf(object);
    if (state === "NodeLost")
      this.#count(
        `Node "${node}" is lost: ${MANY} in quarantine until it confirms that its pods are gone, carries the taint ${OUT_OF_SERVICE}, or another node finds them silent`,
      );
    const isAway = !nodes.items.has(node) && ["Bound", "NodeLost"].includes(state);
    const now = isAway && machine !== undefined && [...nodes.items.values()].find((each) => each.machine === machine);
    if (now)
      this.#count(
        `Node "${node}" is gone, and its machine is node "${now.name}" now: ${MANY} in use or in quarantine until a node finds them silent`,
      );
    if (!pools.items.has(object.spec.pool)) this.#count(`There is no IPPool "${object.spec.pool}", and ${MANY} in use`);
  }

  get sentences(): readonly string[] {
    const many = (count: number): string => (count === 1 ? "1 of its addresses is" : `${count} of its addresses are`);
    const sorted = [...this.#counts].sort(([a], [b]) => compareText(a, b));
    return sorted.map(([sentence, count]) => sentence.replace(MANY, many(count)));
  }

  #count(sentence: string): void {
    this.#counts.set(sentence, (this.#counts.get(sentence) ?? 0) + 1);
  }
}
