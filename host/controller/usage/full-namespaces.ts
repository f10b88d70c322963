/**
 * Tells agents which namespaces have as many addresses as they may have (`maxAddressesPerNamespace`): no agent sees more than the addresses of its own node.
 * The list stands in the status of the Coordinator `default`, which every agent follows; it is written when a namespace comes to it or leaves it.
 * Effects: writes `status.fullNamespaces`, only while this process leads.
 */
import { statusPath } from "../../kubernetes/paths.ts";
import { COORDINATORS } from "../../resources/collections.ts";
import { fullNamespacesOf } from "../../resources/coordinator.ts";
import type { IpAllocation } from "../../resources/ip-allocation.ts";
import { MAX_FULL_NAMESPACES } from "../../resources/status.ts";
import { settingsOf } from "../caches.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { Controller, ControllerDeps, StartController } from "../types.ts";

/** Between two looks at which namespaces have as many addresses as they may have: milliseconds. So long, and the way of two watches, a namespace may go beyond. @limit */
export const SHARES_REST_MS = 2_000;

/** The one that counts. */
const NAME = "default";

const PATH = statusPath(COORDINATORS, { name: NAME });

export const startShares: StartController = (deps) => keepShares(deps);

function keepShares(deps: ControllerDeps): Controller {
  const { caches } = deps;
  const tally = new NamespaceTally();
  for (const allocation of caches.allocations.items.values()) tally.change(undefined, allocation);
  const loop = startReconciling(deps, {
    failure: "Writing the namespaces that have reached their limit of addresses failed",
    work: () => tell(deps, tally),
    restMs: () => SHARES_REST_MS,
  });
  const wake = (): void => loop.wake();
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
      return loop.problems;
    },
    close: async () => {
      for (const end of ends) end();
      await loop.close();
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

class NamespaceTally {
  readonly #counts = new Map<string, number>();

  /** Undefined: there was none, or there is none any more. */
  change(before: IpAllocation | undefined, now: IpAllocation | undefined): void {
    const [former, current] = [before, now].map((each) => each && namespaceOf(each));
    if (former === current) return;
    if (former !== undefined) this.#add(former, -1);
    if (current !== undefined) this.#add(current, 1);
  }

  /** Those with as many as `limit`, by name in the order of their names, at most `most` of them. */
  full(limit: number, most: number): { readonly name: string; readonly addresses: number }[] {
    const full = [...this.#counts].flatMap(([name, addresses]) => (addresses >= limit ? [{ name, addresses }] : []));
    return full.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, most);
  }

  #add(namespace: string, count: number): void {
    const sum = (this.#counts.get(namespace) ?? 0) + count;
    if (sum === 0) this.#counts.delete(namespace);
    else this.#counts.set(namespace, sum);
  }
}

/** Undefined for an address that cools: it is nobody's. Of a machine that migrates both holders are in one namespace. */
function namespaceOf({ spec: { holders, workload, quarantine } }: IpAllocation): string | undefined {
  return (holders[0]?.namespace ?? workload?.namespace ?? quarantine?.holder?.namespace) || undefined;
}
