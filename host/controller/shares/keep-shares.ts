/**
 * Tells agents which namespaces have as many addresses as they may have (`maxAddressesPerNamespace`): no agent sees more than the addresses of its own node.
 * The list stands in the status of the Coordinator `default`, which every agent follows; it is written when a namespace comes to it or leaves it.
 * A part of the controller, started by parts.ts.
 * Effects: writes `status.fullNamespaces`, only while this process leads.
 */

import { fullNamespacesOf } from "../../resources/coordinator.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";
import { MAX_FULL_NAMESPACES } from "../../resources/status.ts";
import { patchIfSame } from "../patch.ts";
import { Rounds } from "../rounds.ts";
import { settingsOf } from "../settings.ts";
import type { ControllerDeps, RunningController, StartController } from "../types.ts";
import { NamespaceTally } from "./namespace-tally.ts";

/** Between two looks at which namespaces have as many addresses as they may have: milliseconds. So long, and the way of two watches, a namespace may go beyond. @limit */
export const SHARES_REST_MS = 2_000;

/** The one that counts. */
const NAME = "default";

const PATH = `${API_PATH}/coordinators/${NAME}/status`;

export const startShares: StartController = (tools) => keepShares(tools);

function keepShares(tools: ControllerDeps): RunningController {
  const { caches, leading, log, random } = tools;
  const tally = new NamespaceTally();
  for (const allocation of caches.allocations.items.values()) tally.change(undefined, allocation);
  const rounds = new Rounds({
    ...{ failure: "The namespaces that have their share of addresses could not be told", leading, log, random },
    work: () => tell(tools, tally),
    restMs: () => SHARES_REST_MS,
  });
  const wake = (): void => rounds.wake();
  const ends = [
    caches.allocations.subscribe((change) => {
      tally.change(change.before, change.kind === "set" ? change.value : undefined);
      wake();
    }),
    caches.vendorConf.subscribe(wake),
    caches.coordinators.subscribe(({ key }) => key === NAME && wake()),
  ];
  return {
    get problems() {
      return rounds.problems;
    },
    close: async () => {
      for (const end of ends) end();
      await rounds.close();
    },
  };
}

/** Gives after how many milliseconds it is to be tried again: another one has written to the object, and the watch is about to tell. */
async function tell({ api, caches, leading, log }: ControllerDeps, tally: NamespaceTally): Promise<number | undefined> {
  const coordinator = caches.coordinators.items.get(NAME);
  if (coordinator === undefined || coordinator.deleting) return undefined;
  const { maxAddressesPerNamespace: limit } = settingsOf(caches);
  const fullNamespaces = limit === 0 ? [] : tally.full(limit, MAX_FULL_NAMESPACES);
  const told = [...fullNamespacesOf(coordinator.status).keys()].join();
  const now = fullNamespaces.map(({ name }) => name).join();
  if (told === now) return undefined;
  const { uid, resourceVersion } = coordinator;
  const body = { status: { fullNamespaces } };
  if ((await patchIfSame(api, { path: PATH, uid, resourceVersion, body, signal: leading })) === undefined)
    return SHARES_REST_MS;
  log.info({ fullNamespaces, limit }, "Namespaces that have as many addresses as they may have");
  return undefined;
}
