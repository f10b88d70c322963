/**
 * Requests of a cluster's IPAMs to the API server for one pod.
 * Effects: daemons and proxies, one after the other.
 */
import { startApiProxy } from "../../test/lab/cluster/api-proxy.ts";
import type { TallyRow } from "../../test/lab/cluster/api-tally.ts";
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { formatFigure, type Table } from "../../test/lab/statistics.ts";
import { openClusterBerth } from "../cluster/berth.ts";
import { sayProgress } from "../harness/progress.ts";
import { tableOf } from "../harness/table.ts";
import type { Contestant } from "../ipam/contestant.ts";
import { measure } from "../ipam/measure.ts";
import type { Site } from "./alone.ts";
import { openSpiderpool } from "./spiderpool.ts";
import { openWhereabouts } from "./whereabouts.ts";

const PODS = 40;
/** Pods of this site with lower numbers are measured. */
const FIRST = 100_000;

export interface Requests {
  readonly name: string;
  /** Number of requests of one pod's ADD and DEL and their follow-up. */
  readonly count: number;
  readonly bytes: number;
  /** `post ipallocations 1.0` */
  readonly kinds: readonly string[];
}

/** Each by itself and with its daemons anew, so that nothing but its own calls passes its proxy. */
export async function countAll(site: Site): Promise<Requests[]> {
  const opened: ((kubeconfig: string) => Promise<Contestant>)[] = [
    (kubeconfig) => openWhereabouts({ ...site, node: "where-counted", kubeconfig }),
    (kubeconfig) => openSpiderpool({ ...site, node: "spider-counted", kubeconfig }),
    (kubeconfig) => openClusterBerth({ ...site, node: "ahead-counted", isAhead: true, kubeconfig }),
    (kubeconfig) => openClusterBerth({ ...site, node: "plain-counted", isAhead: false, kubeconfig }),
  ];
  const all: Requests[] = [];
  sayProgress("requests to the API server");
  for (const open of opened) {
    all.push(await countRequests(site.plane, open));
  }
  return all;
}

/**
 * Opens one contestant with the proxy's kubeconfig and has it serve {@link PODS}: requests from before the pods were
 * created until their addresses were free, without watches and those of a start.
 */
async function countRequests(
  plane: ControlPlane,
  open: (kubeconfig: string) => Promise<Contestant>,
): Promise<Requests> {
  await using stack = new AsyncDisposableStack();
  const proxy = await startApiProxy(plane);
  stack.defer(() => proxy.stop());
  const contestant = await open(proxy.kubeconfig);
  stack.defer(() => contestant.close());
  proxy.resetTally();
  await measure([contestant], { atOnce: 1, callsPerRound: PODS, warmUpRounds: 0, rounds: 1 }, FIRST);
  return requestsOf(
    contestant.name,
    proxy.tally().filter(({ verb }) => verb !== "watch"),
  );
}

function requestsOf(name: string, rows: readonly TallyRow[]): Requests {
  const sum = (value: (row: TallyRow) => number): number => rows.reduce((total, row) => total + value(row), 0) / PODS;
  return {
    name,
    count: sum(({ requests }) => requests),
    bytes: sum(({ requestBytes, responseBytes }) => requestBytes + responseBytes),
    kinds: rows
      .toSorted((a, b) => b.requests - a.requests)
      .map(({ verb, resource, requests }) => `${verb} ${resource} ${formatFigure(requests / PODS)}`),
  };
}

export function tabulateRequests(all: readonly Requests[]): Table {
  return tableOf<Requests>(
    "Requests to the API server for one pod: ADD, DEL and what follows them",
    [
      ["IPAM", ({ name }) => name],
      ["requests", ({ count }) => count],
      ["bytes", ({ bytes }) => bytes.toFixed(0)],
      ["of them", ({ kinds }) => kinds.slice(0, 6).join(", ")],
    ],
    all,
  );
}
