/** The targets against peers, what failed, and plots. */
import { formatFigure } from "../../test/lab/statistics.ts";
import { BERTH_AHEAD, BERTH_PLAIN } from "../cluster/berth.ts";
import { atMost, drawFigure, type Figure, type Target } from "../harness/report.ts";
import { type Sample, wallMs } from "../harness/runner.ts";
import { succeeded } from "../ipam/measure.ts";
import type { Series } from "./alone.ts";
import { BERTH_CHAIN, type ChainRow, SPIDERPOOL_CHAIN } from "./chain.ts";
import { describeFailures, reasonOf } from "./failures.ts";
import type { Requests } from "./requests.ts";
import { SPIDERPOOL } from "./spiderpool.ts";
import type { StormFigures } from "./storm.ts";
import { WHEREABOUTS } from "./whereabouts.ts";

const sceneOf = ({ shape, atOnce }: Series): string => `${shape.name}, ${atOnce} at once`;

/** What failed where, in the words of those that failed. */
export function failuresOf(series: readonly Series[], storms: readonly StormFigures[]): string[] {
  const alone = series.flatMap((one) => [
    ...one.all.flatMap(({ name, failures }) => describeFailures(`${name}, ${sceneOf(one)}`, failures)),
    ...one.unable.map(
      ({ name, reason }) => `${name}, ${one.shape.name}: the pool cannot be made: "${reasonOf(reason)}"`,
    ),
  ]);
  const stormy = storms.flatMap(({ name: storm, rows }) =>
    rows.flatMap(({ name, failures }) => describeFailures(`${name}, ${storm}`, failures)),
  );
  return [...alone, ...stormy];
}

const isClusterWide = (name: string): boolean => name === WHEREABOUTS || name === SPIDERPOOL;
const isBerthInCluster = (name: string): boolean => name === BERTH_AHEAD || name === BERTH_PLAIN;

interface Contest {
  readonly what: string;
  readonly name: string;
  readonly own: number;
  readonly theirs: readonly number[];
}

/** The target that the own figure is below all of theirs; of those that have one. */
function below({ what, name, own, theirs }: Contest, unit: string): Target {
  const least = Math.min(...theirs.filter(Number.isFinite));
  const ratio = Number.isFinite(least)
    ? `${formatFigure(own / least)} × (${formatFigure(own)} of ${formatFigure(least)}${unit})`
    : `${formatFigure(own)}${unit}, and no peer succeeded`;
  return { what: `${what}: ${name}`, wanted: "less than every peer of a cluster", measured: ratio, isMet: own < least };
}

interface Timed {
  readonly name: string;
  readonly add: readonly Sample[];
  readonly del: readonly Sample[];
}

function timeTargets(scene: string, all: readonly Timed[]): Target[] {
  const ours = all.filter(({ name }) => isBerthInCluster(name));
  const peers = all.filter(({ name }) => isClusterWide(name));
  return (["add", "del"] as const).flatMap((verb) =>
    [0.5, 0.99].flatMap((share) =>
      ours.map(({ name, ...own }) => {
        const theirs = peers.map((peer) => wallMs(peer[verb], share));
        const what = `${verb.toUpperCase()} p${share * 100}, ${scene}`;
        return below({ what, name, own: wallMs(own[verb], share), theirs }, " ms");
      }),
    ),
  );
}

function chainTargets(all: readonly ChainRow[]): Target[] {
  const find = (wanted: string, share: number): number =>
    wallMs(all.find(({ name }) => name === wanted)?.adds ?? [], share);
  return [0.5, 0.99].map((share) =>
    atMost({
      ...{ what: `the chain until the first ping, p${share * 100}: ${BERTH_CHAIN}`, base: SPIDERPOOL_CHAIN },
      ...{ valueMs: find(BERTH_CHAIN, share), baseMs: find(SPIDERPOOL_CHAIN, share), limit: 0.25 },
    }),
  );
}

function stormTargets({ name: scene, pods, rows }: StormFigures): Target[] {
  const times = rows.map(({ name, add, del }) => ({ name, add: succeeded(add), del: succeeded(del) }));
  return [
    ...timeTargets(scene, times),
    ...rows
      .filter(({ name }) => isBerthInCluster(name))
      .map(({ name, live, duplicates, leaked, failures }) => ({
        what: `${scene}, pods without an address, duplicates, leaks, failures: ${name}`,
        wanted: "none",
        measured: [pods - live, duplicates, leaked, failures.length].join(", "),
        isMet: pods === live && duplicates === 0 && leaked === 0 && failures.length === 0,
      })),
  ];
}

function requestTargets(requests: readonly Requests[]): Target[] {
  const theirs = requests.filter(({ name }) => isClusterWide(name)).map(({ count }) => count);
  return requests
    .filter(({ name }) => isBerthInCluster(name))
    .map(({ name, count }) => below({ what: "requests to the API server for one pod", name, own: count, theirs }, ""));
}

export interface PeerFigures {
  readonly series: readonly Series[];
  readonly requests: readonly Requests[];
  readonly chains: readonly ChainRow[];
  readonly storms: readonly StormFigures[];
}

export function targetsOf({ series, requests, chains, storms }: PeerFigures): Target[] {
  return [
    ...series.flatMap((one) => timeTargets(sceneOf(one), one.all)),
    ...requestTargets(requests),
    ...chainTargets(chains),
    ...storms.flatMap(stormTargets),
  ];
}

/** ADD by the number at once, in the shape that has several. */
export function plotsOf({ series, chains, storms }: PeerFigures): Figure[] {
  const [first] = series;
  const byNumber = series.filter(({ shape }) => shape === first?.shape);
  const names = first?.all.map(({ name }) => name) ?? [];
  const seriesOf = (share: number) =>
    names.map((name) => ({
      name: name.replace("berth in a cluster", "berth").replace(/, empty .*/, ""),
      values: byNumber.map(({ all }) => wallMs(all.find((each) => each.name === name)?.add ?? [], share)),
    }));
  const places = byNumber.map(({ atOnce }) => `${atOnce} at once`);
  const unit = "milliseconds from exec to exit";
  const shares = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1];
  const percentiles = shares.map((share) => (share === 0 ? "min" : share === 1 ? "max" : `p${share * 100}`));
  const overShares = (samples: readonly Sample[]): number[] => shares.map((share) => wallMs(samples, share));
  const storm = storms.at(-1);
  return [
    drawFigure("docs/peers-at-once.svg", {
      ...{ title: `ADD p50 of IPAM alone, ${first?.shape.name}`, unit, places, series: seriesOf(0.5) },
    }),
    drawFigure("docs/peers-chain.svg", {
      ...{ title: "The chain of a NIC until the first ping", unit, places: percentiles },
      series: chains.map(({ name, adds }) => ({ name: name.replace("macvlan + ", ""), values: overShares(adds) })),
    }),
    drawFigure("docs/peers-storm.svg", {
      ...{ title: `ADDs of ${storm?.pods} pods at once`, unit, places: percentiles },
      series: (storm?.rows ?? []).map(({ name, add }) => ({
        ...{ name: name.replace(" in a cluster", ""), values: overShares(succeeded(add)) },
      })),
    }),
  ];
}
