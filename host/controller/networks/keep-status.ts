/**
 * Keeps the status of the Coordinator `default` what the sources say: looks after each change, and writes when it differs.
 * A part of the controller, started by parts.ts.
 * Effects: watches; writes the status, only while this process leads.
 */
import { API_PATH } from "../../resources/fields/metadata.ts";
import { NETWORKS_DELAY_MS, NETWORKS_LOOK_MS } from "../limits.ts";
import type { ControlledCoordinator } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import { Rounds } from "../rounds.ts";
import type { ControllerTools, Part, StartPart } from "../tools.ts";
import { isStatus, type NetworksStatus, planStatus } from "./plan-status.ts";
import { openSources, type Sources, type SourcesOptions } from "./sources.ts";

/** The one that counts. */
const NAME = "default";

const PATH = `${API_PATH}/coordinators/${NAME}/status`;

export const startNetworks: StartPart = (tools) => keepNetworks(tools);

export function keepNetworks(tools: ControllerTools, options: Pick<SourcesOptions, "missingLookMs"> = {}): Part {
  const { api, caches, leading, log, random } = tools;
  /** Of the last look. */
  let notReady: string | undefined;
  const look = async (sources: Sources): Promise<number | undefined> => {
    const coordinator = caches.coordinators.items.get(NAME);
    notReady = undefined;
    if (coordinator === undefined || coordinator.deleting) return undefined;
    const planned = planStatus(coordinator, sources.sightings);
    if (planned?.phase === "NotReady") notReady = `Coordinator "${NAME}" is not ready: ${planned.reason}`;
    if (planned !== undefined && !isStatus(coordinator, planned)) {
      if (!(await write(tools, coordinator, planned))) return NETWORKS_DELAY_MS;
      log.info({ ...planned }, "The cluster's networks were written into the Coordinator");
    }
    // That a source cannot be read is told by no change.
    return sources.areRead ? undefined : NETWORKS_LOOK_MS;
  };
  const sources = openSources({
    ...{ api, nodes: caches.nodes, log, random, ...options },
    onChange: () => rounds.wake(),
  });
  const rounds = new Rounds({
    ...{ failure: `The status of Coordinator "${NAME}" could not be written`, leading, log, random },
    work: () => look(sources),
    restMs: () => NETWORKS_DELAY_MS,
  });
  const leave = caches.coordinators.subscribe(({ key }) => {
    if (key === NAME) rounds.wake();
  });
  return {
    get problems() {
      return [...sources.problems, ...(notReady === undefined ? [] : [notReady]), ...rounds.problems];
    },
    close: async () => {
      leave();
      await rounds.close();
      await sources.close();
    },
  };
}

/** False: it is another object by now, or none. The watch is about to tell. */
async function write(
  { api, leading }: ControllerTools,
  { uid, resourceVersion }: ControlledCoordinator,
  status: NetworksStatus,
): Promise<boolean> {
  const patched = await patchIfSame(api, { path: PATH, uid, resourceVersion, body: { status }, signal: leading });
  return patched !== undefined;
}
