/**
 * Keeps the status of the Coordinator `default` in line with the sources of the cluster's networks. Creates a missing
 * object with an empty specification, for the administrator to fill.
 */

import { isConflict, type KubeCall } from "../../kubernetes/kube-api.ts";
import { collectionPath, statusPath } from "../../kubernetes/paths.ts";
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import { orElse } from "../../lib/try-or.ts";
import { COORDINATORS } from "../../resources/collections.ts";
import { COORDINATOR_NAME, IS_IGNORED } from "../../resources/coordinator.ts";
import { API_VERSION } from "../../resources/fields/metadata.ts";
import { formatSecond, planConditions } from "../conditions/plan-conditions.ts";
import type { ControlledCoordinator } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { ControllerDeps, StartController } from "../types.ts";
import { isStatus, notReady, type PlannedStatus, planStatus } from "./plan-status.ts";
import { openSources, type Sources } from "./sources.ts";

/** Delay between a change and the comparison of the cluster's networks: milliseconds. It merges several changes. */
const NETWORKS_DELAY_MS = 200;

/** Interval of that comparison while a source has not been read: milliseconds. */
const NETWORKS_RETRY_MS = 5_000;

/** The status of every other Coordinator. */
const IGNORED = notReady(
  { phase: "NotReady", reason: `This Coordinator ${IS_IGNORED}`, overlayPodCIDR: [], serviceCIDR: [] },
  "Ignored",
);

export const startNetworks: StartController = (deps) => {
  const { api, caches, log, random } = deps;
  /** Why the Coordinator was not ready in the last pass. */
  let unready: string | undefined;
  /** Names of ignored Coordinators. */
  let ignored: readonly string[] = [];
  const look = async (sources: Sources): Promise<number | undefined> => {
    const coordinator = caches.coordinators.items.get(COORDINATOR_NAME);
    unready = undefined;
    ignored = [...caches.coordinators.items.keys()].filter((name) => name !== COORDINATOR_NAME).sort();
    const refusals = new RefusalsOf();
    for (const name of ignored) await refusals.attempt(() => reportIgnored(deps, name));
    if (coordinator === undefined) {
      await create(deps);
      return refusals.require();
    }
    if (coordinator.deleting) return refusals.require();
    const planned = planStatus(coordinator, sources.states);
    if (planned?.networks.phase === "NotReady")
      unready = `Coordinator "${COORDINATOR_NAME}" is not ready: ${planned.networks.reason}`;
    if (planned !== undefined && !(await write(deps, coordinator, planned))) return NETWORKS_DELAY_MS;
    // A source that cannot be read causes no change.
    return refusals.require(sources.areRead ? undefined : NETWORKS_RETRY_MS);
  };
  const sources = openSources({ api, nodes: caches.nodes, log, random, onChange: () => loop.wake() });
  const loop = startReconciling(deps, {
    failure: `Writing the status of Coordinator "${COORDINATOR_NAME}" failed`,
    work: () => look(sources),
    restMs: () => NETWORKS_DELAY_MS,
    follow: (wake) => [caches.coordinators.subscribe(wake)],
  });
  return {
    get problems() {
      const others = ignored.map((name) => `Coordinator "${name}" ${IS_IGNORED}`);
      return [...sources.problems, ...(unready === undefined ? [] : [unready]), ...others, ...loop.problems];
    },
    close: async () => {
      await loop.close();
      await sources.close();
    },
  };
};

/** All fields have defaults, so administrators need not create it. An object created meanwhile stays unchanged. */
async function create({ api, leading, log }: ControllerDeps): Promise<void> {
  const body = { apiVersion: API_VERSION, kind: "Coordinator", metadata: { name: COORDINATOR_NAME }, spec: {} };
  const call: KubeCall = { method: "POST", path: collectionPath(COORDINATORS), body, signal: leading };
  if ((await api.call(call).catch(orElse(isConflict, undefined))) === undefined) return;
  log.info({ name: COORDINATOR_NAME }, "There was no Coordinator; created one with the default settings");
}

/** Reports an ignored Coordinator in its own status. */
async function reportIgnored(deps: ControllerDeps, name: string): Promise<void> {
  const coordinator = deps.caches.coordinators.items.get(name);
  if (coordinator === undefined || coordinator.deleting) return;
  await write(deps, coordinator, IGNORED);
}

/** Writes the parts of the status that differ. Returns false if the object has changed, as the watch reports. */
async function write(
  { api, clock, leading, log }: ControllerDeps,
  coordinator: ControlledCoordinator,
  { networks, ready }: PlannedStatus,
): Promise<boolean> {
  const { name, uid, resourceVersion } = coordinator;
  const { conditions, observedGeneration } = planConditions({
    object: coordinator,
    decisions: [ready],
    now: formatSecond(clock.now()),
    sinceMs: Number.POSITIVE_INFINITY,
  });
  const isOther = !isStatus(coordinator, networks);
  if (!isOther && conditions === undefined) return true;
  const status = { ...(isOther ? networks : {}), ...(conditions && { conditions, observedGeneration }) };
  const path = statusPath(COORDINATORS, { name });
  if ((await patchIfSame(api, { path, uid, resourceVersion, body: { status }, signal: leading })) === undefined)
    return false;
  if (!isOther) return true;
  if (name === COORDINATOR_NAME)
    log.info({ ...networks }, "The cluster's networks have changed; the Coordinator is updated");
  else log.warn({ name, reason: networks.reason }, "A Coordinator is ignored");
  return true;
}
