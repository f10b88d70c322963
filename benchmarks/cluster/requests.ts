/**
 * How many requests an agent sends for a pod, by verb and resource, over the life of the pod's address.
 * Effects: agents behind a proxy that counts; objects in the API server.
 */
import type { ControlPlane } from "../../test/lab/control-plane.ts";
import { formatFigure, type Table } from "../../test/lab/statistics.ts";
import type { Target } from "../harness/report.ts";
import { type Column, detail, tableOf } from "../harness/table.ts";
import type { Place } from "../ipam/contestant.ts";
import { openClusterBerth } from "./berth.ts";
import { countRequests } from "./count-requests.ts";

const PODS = 100;
const AT_ONCE = 10;

/** Of all verbs that write. */
const WRITTEN = "writes of allocations";

/** Create and delete. */
const WRITES = 2;

interface Counted {
  readonly name: string;
  /** Per pod, by verb and resource: `post ipallocations`. */
  readonly perPod: ReadonlyMap<string, number>;
}

/** A released address of a small pool is published for other nodes (docs/allocation.md, cooling visibility). */
const POOLS = { "/16": "10.142.0.0/16", "/24": "10.141.0.0/24" } as const;

/** Shorter than the default, and long enough for every release to be seen as cooling. */
const COOLDOWN = "2s";

interface RequestCase {
  readonly node: string;
  readonly size: keyof typeof POOLS;
  readonly isAhead: boolean;
}

const CASES: readonly RequestCase[] = [
  { node: "counted-ahead", size: "/16", isAhead: true },
  { node: "counted-plain", size: "/16", isAhead: false },
  { node: "counted-small", size: "/24", isAhead: false },
];

export async function countAgentRequests(plane: ControlPlane, place: Place): Promise<{ table: Table; target: Target }> {
  for (const [size, subnet] of Object.entries(POOLS)) {
    await plane.client.create("/apis/ipam.vendor.io/v1/ippools", {
      ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name: poolOf(size) } },
      spec: { subnet, cooldown: COOLDOWN },
    });
  }
  const counted: Counted[] = [];
  for (const one of CASES) counted.push(await countCase(plane, place, one));
  const rows = [...new Set(counted.flatMap(({ perPod }) => [...perPod.keys()]))].sort();
  const writes = counted.map(({ perPod }) => writesOf(perPod));
  const most = Math.max(...writes.slice(0, -1));
  return {
    table: detail(
      tableOf<string>(
        "Requests of an agent for a pod with one address, from its creation until the address is free",
        [
          ["verb and resource", (row) => row],
          ...counted.map(
            ({ name, perPod }): Column<string> => [
              name,
              (row) => (row === WRITTEN ? writesOf(perPod) : (perPod.get(row) ?? 0)),
            ],
          ),
        ],
        [...rows, WRITTEN],
      ),
    ),
    target: {
      what: "writes per address, pool of more than 256 addresses",
      wanted: `≤ ${WRITES}`,
      measured: formatFigure(most),
      isMet: most <= WRITES,
    },
  };
}

async function countCase(plane: ControlPlane, place: Place, { node, size, isAhead }: RequestCase): Promise<Counted> {
  const pool = poolOf(size);
  const { rows } = await countRequests(plane, { atOnce: AT_ONCE, first: 0, count: PODS }, (kubeconfig) =>
    openClusterBerth({ plane, place, node, pool, isAhead, kubeconfig }),
  );
  return {
    name: `${isAhead ? "claimed ahead" : "nothing claimed ahead"}, ${size}`,
    perPod: new Map(rows.map(({ verb, resource, requests }) => [`${verb} ${resource}`, requests / PODS])),
  };
}

/** `counted-16` */
function poolOf(size: string): string {
  return `counted-${size.slice(1)}`;
}

function writesOf(perPod: Counted["perPod"]): number {
  const isWrite = (key: string): boolean => /^(?:post|put|patch|delete) ipallocations$/.test(key);
  return [...perPod].reduce((sum, [key, count]) => sum + (isWrite(key) ? count : 0), 0);
}
