/**
 * The figures of peers for readers who choose an IPAM: tables with a row for each, targets against the peers, failures,
 * and plots.
 */
import { homedir } from "node:os";
import { root } from "../../scripts/setup/paths.mjs";
import { formatFigure, formatTable, type Table } from "../../test/lab/statistics.ts";
import { BERTH_AHEAD, BERTH_PLAIN } from "../cluster/berth.ts";
import { atMost, drawFigure, type Figure, type Target } from "../harness/report.ts";
import { type Sample, wallMs } from "../harness/runner.ts";
import { tableOf } from "../harness/table.ts";
import { type Measured, succeeded } from "../ipam/measure.ts";
import type { Series } from "./alone.ts";
import { BERTH_CHAIN, SPIDERPOOL_CHAIN } from "./chain.ts";
import { type Requests, tabulateRequests } from "./requests.ts";
import { SPIDERPOOL } from "./spiderpool.ts";
import type { StormFigures } from "./storm.ts";
import { WHEREABOUTS } from "./whereabouts.ts";

export interface PeerFigures {
  readonly series: readonly Series[];
  readonly requests: readonly Requests[];
  readonly chains: readonly Measured[];
  readonly storms: readonly StormFigures[];
}

export function summarize({ series, requests, chains, storms }: PeerFigures): Table[] {
  return [
    summarizeTimes("ADD of IPAM alone, p50 / p99, milliseconds", series, "add"),
    summarizeTimes("DEL of IPAM alone, p50 / p99, milliseconds", series, "del"),
    summarizeChains(chains),
    ...storms.map(summarizeStorm),
    tabulateRequests(requests),
  ];
}

/** The table of {@link summarize} by which a reader chooses; drawings on the same page show chains and storms. */
export function describeHeadline({ series }: PeerFigures): string {
  return formatTable(summarizeTimes("ADD of IPAM alone, p50 / p99, milliseconds", series, "add"));
}

/** The medians of the two peers and of Berth, in a cluster each. Of the chains, Berth's has claimed ahead. */
export function describeMedians({ series, chains }: Pick<PeerFigures, "series" | "chains">): string {
  const [alone, manyAtOnce] = [1, 40].map((atOnce) => series.find((one) => one.atOnce === atOnce)?.all ?? []);
  const ipams = [WHEREABOUTS, SPIDERPOOL, BERTH_AHEAD, BERTH_PLAIN];
  const chainNames = ["macvlan + whereabouts", "macvlan + Spiderpool", "macvlan + berth", "not measured"];
  const row = (
    what: string,
    names: readonly string[],
    samplesOf: (name: string) => readonly Sample[] | undefined,
  ): string[] => [
    what,
    ...names.map(samplesOf).map((samples) => (samples === undefined ? "–" : formatFigure(wallMs(samples, 0.5)))),
  ];
  const adds = (all: readonly Measured[] | undefined) => (name: string) => all?.find((each) => each.name === name)?.add;
  const chain = (name: string): Measured | undefined => chains.find((each) => each.name === name);
  return formatTable({
    title: "Milliseconds, median",
    columns: ["", "whereabouts", "Spiderpool", "Berth, claimed ahead", "Berth, nothing claimed ahead"],
    rows: [
      row("address for a pod, empty /24", ipams, adds(alone)),
      row("the same, 40 pods at once", ipams, adds(manyAtOnce)),
      row("NIC of macvlan until the first ping is answered", chainNames, (name) => chain(name)?.add),
      row("that NIC's removal", chainNames, (name) => chain(name)?.del),
    ],
  });
}

/** `2.31 / 4.02` */
function pair(samples: readonly Sample[]): string {
  return samples.length === 0
    ? "all fail"
    : [0.5, 0.99].map((share) => formatFigure(wallMs(samples, share))).join(" / ");
}

function summarizeTimes(title: string, series: readonly Series[], verb: "add" | "del"): Table {
  // A contestant has its pool's shape in its name where it has one of its own for each.
  const nameOf = (name: string): string =>
    name.replace(/^(berth|host-local), .*$/, "$1").replace(/^berth in/, "berth, in");
  const names = [...new Set(series.flatMap(({ all, unable }) => [...all, ...unable].map(({ name }) => nameOf(name))))];
  const cell = (name: string, { all }: Series): string => {
    const found = all.find((each) => nameOf(each.name) === name);
    if (found === undefined) return "no such pool";
    const failed = found.failures.length;
    return `${pair(found[verb])}${failed > 0 ? ` (${failed} failed)` : ""}`;
  };
  return {
    title,
    columns: [
      "IPAM",
      ...series.map(({ shape, atOnce }) => `${shape.name}${atOnce === 1 ? "" : `, ${atOnce} at once`}`),
    ],
    rows: names.map((name) => [name, ...series.map((one) => cell(name, one))]),
  };
}

function summarizeChains(all: readonly Measured[]): Table {
  const own = wallMs(all.find(({ name }) => name === BERTH_CHAIN)?.add ?? [], 0.5);
  return tableOf<Measured>(
    "The chain of a NIC until the first ping is answered, p50 / p99, milliseconds",
    [
      ["chain", ({ name }) => name],
      ["ADD", ({ add }) => pair(add)],
      ["times Berth's", ({ add }) => wallMs(add, 0.5) / own],
      ["DEL", ({ del }) => pair(del)],
    ],
    all,
  );
}

function summarizeStorm({ name: storm, nodes, pods, rows }: StormFigures): Table {
  return tableOf(
    `${storm === "storm" ? "A storm" : "An exact fit"}: ${pods} pods on ${nodes} nodes at once, and back`,
    [
      ["IPAM", ({ name }) => name],
      ["pods with an address", ({ live, upMs }) => `${live} of ${pods} after ${formatFigure(upMs / 1000)} s`],
      ["pods/s", ({ live, upMs }) => (live * 1000) / upMs],
      ["ADD", ({ add }) => pair(succeeded(add))],
      ["failed ADDs", ({ add }) => String(add.length - succeeded(add).length)],
      ["duplicates", ({ duplicates }) => String(duplicates)],
      ["leaked", ({ leaked }) => String(leaked)],
      ["daemons MiB", ({ daemonsMib }) => (daemonsMib === 0 ? undefined : daemonsMib)],
    ],
    rows,
  );
}

const sceneOf = ({ shape, atOnce }: Series): string => `${shape.name}, ${atOnce} at once`;

/** Returns the failures by place, in the words of the calls that failed. */
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

const isBerthInCluster = (name: string): boolean => name === BERTH_AHEAD || name === BERTH_PLAIN;

function chainTargets(all: readonly Measured[]): Target[] {
  const find = (wanted: string, share: number): number =>
    wallMs(all.find(({ name }) => name === wanted)?.add ?? [], share);
  return [0.5, 0.99].map((share) =>
    atMost({
      ...{ what: `the chain until the first ping, p${share * 100}: ${BERTH_CHAIN}`, base: SPIDERPOOL_CHAIN },
      ...{ valueMs: find(BERTH_CHAIN, share), baseMs: find(SPIDERPOOL_CHAIN, share), limit: 0.3 },
    }),
  );
}

function stormTargets({ name: scene, pods, rows }: StormFigures): Target[] {
  return rows
    .filter(({ name }) => isBerthInCluster(name))
    .map(({ name, live, duplicates, leaked, failures }) => ({
      what: `${scene}, pods without an address, duplicates, leaks, failures: ${name}`,
      wanted: "none",
      measured: [pods - live, duplicates, leaked, failures.length].join(", "),
      isMet: pods === live && duplicates === 0 && leaked === 0 && failures.length === 0,
    }));
}

/** Create and delete. */
const MOST_REQUESTS = 2;

function requestTargets(requests: readonly Requests[]): Target[] {
  return requests
    .filter(({ name }) => isBerthInCluster(name))
    .map(({ name, count }) => ({
      what: `requests to the API server for one pod: ${name}`,
      wanted: `≤ ${MOST_REQUESTS}`,
      measured: formatFigure(count),
      isMet: count <= MOST_REQUESTS,
    }));
}

export function targetsOf({ requests, chains, storms }: Omit<PeerFigures, "series">): Target[] {
  return [...requestTargets(requests), ...chainTargets(chains), ...storms.flatMap(stormTargets)];
}

export function plotsOf({ chains, storms }: Pick<PeerFigures, "chains" | "storms">): Figure[] {
  const unit = "milliseconds from exec to exit";
  const shares = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1];
  const places = shares.map((share) => (share === 0 ? "min" : share === 1 ? "max" : `p${share * 100}`));
  const overShares = (samples: readonly Sample[]): number[] => shares.map((share) => wallMs(samples, share));
  const storm = storms.at(-1);
  return [
    drawFigure("docs/peers-chain.svg", {
      ...{ title: "The chain of a NIC until the first ping", unit, places },
      series: chains.map(({ name, add }) => ({ name: name.replace("macvlan + ", ""), values: overShares(add) })),
    }),
    drawFigure("docs/peers-storm.svg", {
      ...{ title: `ADDs of ${storm?.pods} pods at once`, unit, places },
      series: (storm?.rows ?? []).map(({ name, add }) => ({
        ...{ name: name.replace(" in a cluster", ""), values: overShares(succeeded(add)) },
      })),
    }),
  ];
}

/** Characters of a reason. */
const MOST = 260;

/** The message of a CNI error, or the whole text, without this machine's folders. */
export function reasonOf(text: string): string {
  const details = ["msg", "details"].flatMap((field) => stringField(text, field) ?? []);
  const words = (details.length > 0 ? details.join(": ") : text).replaceAll(root, "…").replaceAll(homedir(), "…");
  const line = words.replaceAll(/\s+/g, " ").trim();
  return line.length > MOST ? `${line.slice(0, MOST)}…` : line;
}

function stringField(text: string, field: string): string | undefined {
  const quoted = new RegExp(`"${field}":\\s*("(?:[^"\\\\]|\\\\.)*")`).exec(text)?.[1];
  return quoted === undefined ? undefined : JSON.parse(quoted);
}

/**
 * Lists failures by reason, with their place and frequency: a line for each reason, the most frequent first; numbers
 * in a reason count as equal.
 */
export function describeFailures(where: string, texts: readonly string[]): string[] {
  const groups = Map.groupBy(texts.map(reasonOf), (reason) => reason.replaceAll(/[\w-]*\d[\w.:-]*/g, "#"));
  return [...groups.values()]
    .toSorted((a, b) => b.length - a.length)
    .map((reasons) => `${where}: ${reasons.length} × "${reasons[0]}"`);
}
