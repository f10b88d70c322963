/** The texts of the page beside the map: a pool, its usage, an address, the results of a search. */
import type { HistoryAnswer, MapAddress, PoolsAnswer, SearchAnswer, UsageAnswer } from "../server/map-records.ts";
import { KIND_TEXTS } from "./colours.ts";
import { make, makeFacts, makeLink, makeList } from "./elements.ts";

type Pool = PoolsAnswer["pools"][number];

/** Conditions that are good when they are true; of all others it is bad. */
const GOOD = ["Ready", "Supplied"];

/** Returns the alerts of the pool's counts, then its conditions that are not as they should be. */
export function findTroubles({ alerts, conditions }: Pool): readonly Trouble[] {
  // `Stalled` repeats `Ready`.
  const bad = conditions.filter(
    ({ type, status }) => type !== "Stalled" && (status === "True") !== GOOD.includes(type),
  );
  return [
    ...alerts.map(({ kind, text }) => ({ text, isQuarantine: kind === "Quarantined" })),
    ...bad.map(({ type, reason, message }) => {
      const text = message === "" ? `${type} (${reason})` : `${type} (${reason}): ${message}`;
      return { text, isQuarantine: false };
    }),
  ];
}

interface Trouble {
  readonly text: string;
  /** The map shows the addresses. */
  readonly isQuarantine: boolean;
}

export function describePool(pool: Pool): HTMLElement[] {
  const used = usedOf(pool);
  const conditions = pool.conditions.map(({ type, status, reason }) => `${type}: ${status} (${reason})`);
  return [
    make("h2", `Pool ${pool.name}`),
    makeFacts([
      ["Subnet", pool.subnet],
      ["Address space", pool.addressSpace],
      ["Addresses", `${BigInt(pool.size).toLocaleString("en")}, ${used.toLocaleString("en")} not free`],
      ["Generated from", pool.generated],
      ["Used", pool.isDisabled ? "for no new addresses (disabled)" : pool.isDefault ? "by default" : undefined],
    ]),
    ...(conditions.length === 0 ? [] : [make("h3", "Conditions"), makeList(conditions)]),
  ];
}

export function describeUsage({ from, stepSeconds, used }: UsageAnswer): (Element | HTMLElement)[] {
  const title = make("h3", "Usage over time");
  if (from === undefined || used.length === 0) return [title, make("p", "No sample has been taken yet.")];
  const [low, high, last] = [Math.min(...used), Math.max(...used), used.at(-1) ?? 0];
  const minutes = Math.round((used.length * stepSeconds) / 60);
  const span = minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
  const text = `In use now: ${last.toLocaleString("en")}. In the last ${span}: ${low.toLocaleString("en")} to ${high.toLocaleString("en")}. The server remembers a day at most.`;
  return [title, make("p", text), ...(used.length > 1 ? [chartOf(used, span)] : [])];
}

/** Returns the pools as rows of a table, the one with the smallest share of free addresses first. */
export function listPools(pools: readonly Pool[], open: (pool: string) => void): (Node | string)[][] {
  const rows = pools.map((pool) => {
    const size = BigInt(pool.size);
    const free = BigInt(pool.free);
    // Tenths of a percent: an IPv6 pool has more addresses than a number can count.
    return { pool, free, size, share: size === 0n ? 0 : Number((free * 1_000n) / size) / 10 };
  });
  rows.sort((a, b) => a.share - b.share || a.pool.name.localeCompare(b.pool.name));
  return rows.map(({ pool, free, size, share }) => {
    const bar = make("meter");
    Object.assign(bar, { min: 0, max: 100, low: 10, optimum: 100, value: share });
    bar.setAttribute("aria-hidden", "true");
    const troubles = findTroubles(pool).length;
    return [
      makeLink(pool.name, () => open(pool.name)),
      make("span", bar, ` ${free.toLocaleString("en")} of ${size.toLocaleString("en")}`),
      troubles === 0 ? "" : `${troubles}`,
    ];
  });
}

/** Addresses that are not free. */
function usedOf({ states }: Pool): number {
  return Object.values(states).reduce((sum, count) => sum + count, 0);
}

const SVG = "http://www.w3.org/2000/svg";

/** A line that fills its frame: lowest to highest count, from `span` ago to now. The text says the same. */
function chartOf(used: readonly number[], span: string): HTMLElement {
  const chart = document.createElementNS(SVG, "svg");
  chart.setAttribute("viewBox", "0 0 100 100");
  chart.setAttribute("preserveAspectRatio", "none");
  const line = document.createElementNS(SVG, "polyline");
  const [low, high] = [Math.min(...used), Math.max(...used)];
  // A constant count is a line in the middle.
  const heightOf = (count: number): number => (high === low ? 50 : 2 + (96 * (high - count)) / (high - low));
  const points = used.map((count, at) => `${(100 * at) / (used.length - 1)},${heightOf(count)}`);
  line.setAttribute("points", points.join(" "));
  chart.append(line);
  const figure = make(
    "figure",
    make("span", high.toLocaleString("en")),
    make("span", low.toLocaleString("en")),
    chart,
    make("span", `${span} ago`),
    make("span", "now"),
  );
  figure.setAttribute("aria-hidden", "true");
  figure.className = "chart";
  return figure;
}

interface ChosenAddress {
  readonly address: string;
  readonly kind: string;
  readonly record: MapAddress | undefined;
  readonly actions: readonly HTMLElement[];
}

export function describeAddress({ address, kind, record, actions }: ChosenAddress): HTMLElement[] {
  const holders = (record?.holders ?? []).map(
    ({ namespace, pod, interface: name, node }) => `${namespace}/${pod}, ${name}, on ${node}`,
  );
  return [
    make("h2", address),
    makeFacts([
      ["State", kind],
      ["Pool", record?.pool],
      ["Pod", holders.length === 0 ? undefined : makeList(holders)],
      ["Workload", record?.workload],
      ["MAC address", record?.mac],
      ["Since", record?.since],
    ]),
    ...actions,
  ];
}

export function describeHistory({ lines, problems }: HistoryAnswer): HTMLElement[] {
  const told = lines.map(({ time, audit, namespace, pod, interface: name, node, code }) => {
    const refused = code === 0 ? "" : `, refused with code ${code}`;
    return `${time} ${audit}: ${namespace}/${pod}, ${name}, on ${node}${refused}`;
  });
  return [
    told.length === 0 ? make("p", "The audit logs have no line about the address.") : makeList(told),
    ...problems.map((problem) => make("p", problem)),
  ];
}

export function describeResults(
  text: string,
  { pools, addresses, isCut }: SearchAnswer,
  open: (pool: string, address?: string) => () => void,
): HTMLElement[] {
  const title = make("h2", `Found for “${text}”`);
  if (pools.length + addresses.length === 0) return [title, make("p", "Nothing.")];
  const found = [
    ...pools.map((pool) => makeLink(`Pool ${pool}`, open(pool))),
    ...addresses.flatMap((record) =>
      record.pools.map((pool) => makeLink(describeFound(record), open(pool, record.address))),
    ),
  ];
  return [title, makeList(found), ...(isCut ? [make("p", "There are more; search for more of the name.")] : [])];
}

function describeFound({ address, state, holders, workload }: MapAddress): string {
  const pods = holders.map(({ namespace, pod, node }) => `${namespace}/${pod} on ${node}`);
  return [address, KIND_TEXTS[state], ...pods, ...(workload === "" ? [] : [workload])].join(", ");
}
