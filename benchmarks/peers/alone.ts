/**
 * ADD and DEL of IPAMs without a main plugin, by turns, in pools of several shapes and with several calls at once.
 * Effects: for each shape a control plane, daemons, plugins.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { referenceBin } from "../../test/lab/cnitool.ts";
import { type ControlPlane, startControlPlane } from "../../test/lab/control-plane.ts";
import { openClusterBerth } from "../cluster/berth.ts";
import { sayProgress } from "../harness/progress.ts";
import { openBerth } from "../ipam/berth.ts";
import { type Contestant, type Place, pluginCalls, type Work } from "../ipam/contestant.ts";
import { openHostLocal } from "../ipam/host-local.ts";
import { type Course, type Measured, measure } from "../ipam/measure.ts";
import { dual24, emptyC24, full16, half16, half19, type PoolShape } from "../ipam/pool-shape.ts";
import { fillBerth, furnish, poolSpecs } from "./cluster.ts";
import { openSpiderpool, SPIDERPOOL } from "./spiderpool.ts";
import { openWhereabouts, WHEREABOUTS } from "./whereabouts.ts";

/** Pools, and how many calls are under way at a time, in how many rounds of how many ADDs and DELs. */
interface Scene {
  readonly shape: PoolShape;
  readonly courses: readonly Course[];
  /** Whether a quick run has it. */
  readonly isBrief?: boolean;
}

/** The first course of a scene has a round that is not measured, in which the daemons warm up. */
const course = (atOnce: number, callsPerRound: number, rounds: number): Course => ({
  ...{ atOnce, callsPerRound, warmUpRounds: atOnce === 1 ? 1 : 0, rounds },
});

const SCENES: readonly Scene[] = [
  { shape: emptyC24, courses: [course(1, 20, 5), course(8, 40, 2), course(40, 40, 2)], isBrief: true },
  { shape: dual24, courses: [course(1, 20, 3)], isBrief: true },
  { shape: half19, courses: [course(1, 5, 2)] },
  { shape: half16, courses: [course(1, 5, 2)] },
  { shape: full16, courses: [course(1, 5, 2)] },
];

const brief = ({ atOnce, callsPerRound }: Course): Course => ({
  ...{ atOnce, callsPerRound: Math.max(atOnce, callsPerRound / 4), warmUpRounds: 0, rounds: 1 },
});

export interface Site {
  readonly plane: ControlPlane;
  readonly place: Place;
  readonly shape: PoolShape;
}

export interface Series {
  readonly shape: PoolShape;
  readonly atOnce: number;
  readonly all: readonly Measured[];
  /** IPAMs that could not be opened on such a pool, and the reasons. */
  readonly unable: readonly { readonly name: string; readonly reason: string }[];
}

/** `within` is called in the first scene, before its control plane ends. */
export async function measureAlone(
  place: Place,
  isQuick: boolean,
  within: (site: Site) => Promise<void>,
): Promise<Series[]> {
  const series: Series[] = [];
  for (const [index, { shape, courses }] of SCENES.filter(({ isBrief = false }) => isBrief || !isQuick).entries()) {
    const plane = await startControlPlane();
    await using stack = new AsyncDisposableStack();
    stack.defer(() => plane.stop());
    await furnish(plane, poolSpecs(shape));
    if (shape.taken > 0) await fillBerth(plane, shape);
    const site: Site = { plane, place, shape };
    series.push(...(await measureScene(site, isQuick ? courses.map(brief) : courses)));
    if (index === 0) await within(site);
  }
  return series;
}

type Opening = readonly [name: string, open: () => Contestant<Work> | Promise<Contestant<Work>>];

async function measureScene(site: Site, courses: readonly Course[]): Promise<Series[]> {
  const { plane, place, shape } = site;
  const { kubeconfig } = plane;
  const families = shape.subnet6 === undefined ? 1 : 2;
  const openings: readonly Opening[] = [
    ["host-local", () => openHostLocal(shape, place)],
    ["static", () => openStatic(place)],
    [WHEREABOUTS, () => openWhereabouts({ ...site, node: "where", kubeconfig })],
    [SPIDERPOOL, () => openSpiderpool({ ...site, node: "spider", kubeconfig })],
    ["berth", () => openBerth(shape, place)],
    ["berth ahead", () => openClusterBerth({ ...site, families, node: "ahead", isAhead: true })],
    ["berth plain", () => openClusterBerth({ ...site, node: "plain", isAhead: false })],
  ];
  await using stack = new AsyncDisposableStack();
  const contestants: Contestant<Work>[] = [];
  const unable: { name: string; reason: string }[] = [];
  for (const [name, open] of openings) {
    try {
      const contestant = await open();
      stack.defer(() => contestant.close());
      contestants.push(mayFail(contestant));
    } catch (error) {
      // Its pool is one object, which can be too large for the API server; ours are to be opened.
      if (name.startsWith("berth") || shape.taken === 0) throw error;
      unable.push({ name, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  const series: Series[] = [];
  let first = 0;
  for (const one of courses) {
    sayProgress(`IPAM alone, ${shape.name}, ${one.atOnce} at once`);
    series.push({ shape, atOnce: one.atOnce, all: await measure(contestants, one, first), unable });
    first += one.callsPerRound * (one.warmUpRounds + one.rounds);
  }
  return series;
}

/** The same, whose calls may fail: they are counted. */
export function mayFail(contestant: Contestant<Work>): Contestant<Work> {
  const lenient = (work: Work): Work => (typeof work === "function" ? work : { ...work, exits: "any" });
  return { ...contestant, add: lenient(contestant.add), del: lenient(contestant.del) };
}

/** The reference plugin `static`: it answers with the address of its configuration and keeps nothing. */
async function openStatic(place: Place): Promise<Contestant> {
  const stdinFile = join(place.directory, "static.json");
  const ipam = { type: "static", addresses: [{ address: "10.152.0.9/24" }] };
  await writeFile(stdinFile, JSON.stringify({ cniVersion: "1.0.0", name: "static", type: "bridge", ipam }));
  return {
    name: "static",
    ...pluginCalls(join(referenceBin, "static"), stdinFile, place),
    daemonPid: undefined,
    close: async () => {},
  };
}
