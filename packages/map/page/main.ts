/** The address map's page: when it loads its data, and where it shows them. */

import { parseIp } from "../../../host/net/ip.ts";
import { parsePrefixOrIp } from "../../../host/net/prefix.ts";
import type { ChangesEvent, MapAddress, PoolsAnswer } from "../server/map-records.ts";
import { Api, Refusal } from "./api.ts";
import { DARK, KIND_TEXTS, LIGHT } from "./colours.ts";
import {
  describeAddress,
  describeHistory,
  describePool,
  describeResults,
  describeUsage,
  findTroubles,
  listPools,
} from "./details.ts";
import { fillTable, find, make, makeLink, makeList } from "./elements.ts";
import { type Block, KINDS, type MapModel } from "./map-model.ts";
import { findQuarantined } from "./overlay.ts";
import { TilePainter } from "./tiles.ts";
import { MapView } from "./view.ts";

/** Pause before the page connects again: milliseconds, doubled up to the second. */
const RETRY_MS = 500;
const MAX_RETRY_MS = 15_000;

/** Time for which the view rests before table and link follow it: milliseconds. */
const REST_MS = 200;

/** Interval at which counts, alerts and usage are read: milliseconds. */
const REFRESH_MS = 30_000;

/** Time from went into quarantine: milliseconds. */
const ALERT_MS = 1_000;

const QUARANTINED = KINDS.indexOf("Quarantined");

/** Largest block whose addresses the table lists one by one: bits. */
const LISTED_BITS = 8;

const dark = matchMedia("(prefers-color-scheme: dark)");
const print = matchMedia("print");
const palette = () => (dark.matches && !print.matches ? DARK : LIGHT);

const api = new Api();
const pools = find<HTMLSelectElement>("pool");
const live = find("live");
const view = new MapView(find<HTMLCanvasElement>("canvas"), palette(), {
  onMove: () => followAtRest(),
  onHover: (number) => showHover(number),
  onChoose: (number) => void choose(number),
});

let answer: PoolsAnswer | undefined;
let following = new AbortController();
let atRest: ReturnType<typeof setTimeout> | undefined;
/** Count the requests for the table and the chosen address, so that a late answer does not replace a newer one. */
let tableTurn = 0;
let chosenTurn = 0;

/** Runs an action of the user; a refusal is shown. */
async function attempt(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (error instanceof Refusal && (error.status === 401 || error.status === 403)) find("access").hidden = false;
    live.textContent = error instanceof Error ? error.message : String(error);
  }
}

async function loadPools(): Promise<void> {
  answer = await api.pools();
  const preferred = answer.pools.find(({ isDefault }) => isDefault)?.name;
  const wanted = [placeOfLink().pool, pools.value, preferred];
  showPools(answer);
  const known = wanted.find((name) => answer?.pools.some((pool) => pool.name === name));
  if (known !== undefined) pools.value = known;
  find("why").hidden = !answer.canExplain;
  find("access").hidden = true;
  if (answer.pools.length === 0) find("where").textContent = "There is no pool";
  else await openPool();
}

function showPools({ pools: all, version }: PoolsAnswer): void {
  find("version").textContent = version;
  pools.replaceChildren(...all.map(optionOf));
  find("overview").hidden = all.length < 2;
  const open = (pool: string): void => {
    pools.value = pool;
    void attempt(openPool);
  };
  fillTable(find("pools"), "Fullest first", ["Pool", "Free", "Alerts"], listPools(all, open));
}

/** A pool with troubles shows their number in the list. */
function optionOf(pool: PoolsAnswer["pools"][number]): HTMLOptionElement {
  const count = findTroubles(pool).length;
  const option = make(
    "option",
    count === 0 ? pool.name : `${pool.name} (${count} ${count === 1 ? "alert" : "alerts"})`,
  );
  option.value = pool.name;
  return option;
}

/** Reads counts, alerts and usage again; the map itself follows its changes. */
async function refreshPools(): Promise<void> {
  answer = await api.pools();
  const chosen = pools.value;
  showPools(answer);
  pools.value = chosen;
  await showPool(chosen);
}

let refreshing: ReturnType<typeof setTimeout> | undefined;
let refreshAtMs = Number.POSITIVE_INFINITY;

/** One refresh waits: the earliest that was asked for. */
function refreshIn(pauseMs: number): void {
  const atMs = performance.now() + pauseMs;
  if (atMs >= refreshAtMs) return;
  clearTimeout(refreshing);
  refreshAtMs = atMs;
  refreshing = setTimeout(() => {
    refreshAtMs = Number.POSITIVE_INFINITY;
    void attempt(refreshPools).finally(() => refreshIn(REFRESH_MS));
  }, pauseMs);
}

async function openPool(): Promise<void> {
  following.abort();
  following = new AbortController();
  const { signal } = following;
  const pool = pools.value;
  find("chosen").hidden = true;
  view.chosen = undefined;
  await Promise.all([showPool(pool), follow(pool, signal)]);
}

/** Changes since the map that is being read was asked for: it may lack them. Undefined: none is being read. */
let meanwhile: ChangesEvent[number][] | undefined;

/** Reads and shows the map, and again while it lacks the island of a change. */
async function load(pool: string, signal: AbortSignal): Promise<void> {
  const changes: ChangesEvent[number][] = [];
  meanwhile = changes;
  try {
    const model = await api.map(pool);
    if (signal.aborted || meanwhile !== changes) return;
    const isNew = view.model?.header.pool !== pool;
    const numbers = setChanges(model, changes);
    view.show(model);
    if (isNew && !goToLink()) view.fitRuns(model.ownRuns());
    view.drawNow();
    showLegend(model);
    followAtRest();
    if (numbers.length < changes.length) await load(pool, signal);
  } finally {
    if (meanwhile === changes) meanwhile = undefined;
  }
}

/** Returns the numbers of those addresses that are on the map. */
function setChanges(model: MapModel, changes: ChangesEvent): number[] {
  return changes.flatMap(([address, state]) => {
    const ip = parseIp(address);
    const number = ip && model.numberOf(ip);
    if (number === undefined) return [];
    model.set(number, state);
    return number;
  });
}

/**
 * Follows the changes until the pool is left. Resolves when the map was shown, or cannot be. After each connection the
 * map is read again: the server does not report earlier changes.
 */
function follow(pool: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  void followOn(pool, signal, () => attempt(() => load(pool, signal)).finally(resolve)).finally(resolve);
  return promise;
}

async function followOn(pool: string, signal: AbortSignal, read: () => Promise<void>): Promise<void> {
  for (let pauseMs = RETRY_MS; !signal.aborted; pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)) {
    let isOpen = false;
    try {
      await api.follow(
        pool,
        {
          onOpen: () => {
            isOpen = true;
            live.textContent = "Live";
            pauseMs = RETRY_MS;
            void read();
          },
          onChanges: (changes) => {
            meanwhile?.push(...changes);
            if (view.model === undefined) return;
            const numbers = setChanges(view.model, changes);
            if (numbers.length < changes.length && meanwhile === undefined) void read();
            view.touch(numbers);
            followAtRest();
            if (changes.some(([, state]) => state === QUARANTINED)) refreshIn(ALERT_MS);
          },
        },
        signal,
      );
      if (!signal.aborted) live.textContent = "The connection ended; connecting again";
    } catch (error) {
      if (signal.aborted) return;
      live.textContent = error instanceof Error ? error.message : String(error);
      if (error instanceof Refusal && (error.status === 401 || error.status === 403)) return;
      // Without its changes it is shown all the same.
      if (!isOpen) await read();
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** The link's `#pool=blue&at=10.0.3.0/24`. */
function placeOfLink(): { readonly pool: string | undefined; readonly at: string | undefined } {
  const place = new URLSearchParams(location.hash.slice(1));
  return { pool: place.get("pool") ?? undefined, at: place.get("at") ?? undefined };
}

/** Returns whether the link names a place of this pool. */
function goToLink(): boolean {
  const { pool, at } = placeOfLink();
  if (pool !== pools.value || at === undefined) return false;
  goTo(at);
  return true;
}

/** Moves to an address or a prefix. */
function goTo(text: string): void {
  const { model } = view;
  const prefix = parsePrefixOrIp(text);
  const number = model && prefix && model.numberOf(prefix.ip);
  if (prefix === undefined || number === undefined) return;
  const bits = (prefix.ip.family === 4 ? 32 : 128) - prefix.length;
  view.fit({ first: number, bits: Math.max(4, Math.min(bits, 24)) });
}

function followAtRest(): void {
  clearTimeout(atRest);
  atRest = setTimeout(() => {
    const { model, block } = view;
    if (model === undefined) return;
    const place = model.describe(block);
    find("where").textContent = `${model.header.pool}: ${place}`;
    history.replaceState(null, "", `#${new URLSearchParams({ pool: model.header.pool, at: place })}`);
    find("canvas").setAttribute("aria-label", describeBlock(model, block));
    showLegend(model);
    void attempt(() => showTable(model, block));
  }, REST_MS);
}

function describeBlock(model: MapModel, block: Block): string {
  const counts = model.count(block);
  const parts = KINDS.filter((kind) => counts[kind] > 0).map((kind) => `${counts[kind]} ${KIND_TEXTS[kind]}`);
  return `${model.describe(block)}: ${parts.join(", ")}`;
}

function showHover(number: number | undefined): void {
  const { model } = view;
  const kind = model && number !== undefined ? KINDS[model.kindAt(number)] : undefined;
  find("hover").textContent =
    model === undefined || number === undefined || kind === undefined
      ? ""
      : `${model.addressAt(number)}: ${KIND_TEXTS[kind]}${placeNote(model, number)}`;
}

/** Returns the note in the map's head on an address beside its kind. */
function placeNote(model: MapModel, number: number): string {
  const { header } = model;
  const value = parseIp(model.addressAt(number))?.value ?? -1n;
  if (header.gateway !== undefined && parseIp(header.gateway)?.value === value) return ", the gateway";
  const exception = header.exceptions?.find(({ address }) => parseIp(address)?.value === value);
  if (exception !== undefined) return `, ${exception.why}`;
  const isIn = ({ first, last }: { readonly first: string; readonly last: string }): boolean => {
    const [low, high] = [parseIp(first)?.value ?? 0n, parseIp(last)?.value ?? -1n];
    return low <= value && value <= high;
  };
  const by = header.reserved.find(isIn)?.name ?? "";
  if (by !== "") return `, in ReservedIP ${by}`;
  const member = header.elsewhere?.find(isIn)?.member ?? "";
  return member === "" ? "" : `, ${member}`;
}

async function choose(number: number): Promise<void> {
  const { model } = view;
  if (model === undefined) return;
  const turn = ++chosenTurn;
  view.chosen = number;
  const address = model.addressAt(number);
  const { pool } = model.header;
  await attempt(async () => {
    const { addresses } = await api.addresses(pool, address, address);
    if (turn !== chosenTurn) return;
    const kind = KIND_TEXTS[KINDS[model.kindAt(number)] ?? "Free"] + placeNote(model, number);
    const section = find("chosen");
    const actions = actionsOf(pool, address, addresses[0]);
    section.replaceChildren(...describeAddress({ address, kind, record: addresses[0], actions }));
    section.hidden = false;
  });
}

/** Returns the actions one click away from an address. */
function actionsOf(pool: string, address: string, record: MapAddress | undefined): readonly HTMLElement[] {
  const output = make("div");
  if (!answer?.canExplain) return [make("p", `Which pods had it: kubectl berth history ${address}`)];
  const history = makeLink("Which pod had this address?", () => {
    void attempt(async () => output.replaceChildren(...describeHistory(await api.history(pool, address))));
  });
  const holder = record?.holders[0];
  const explain =
    holder === undefined
      ? []
      : [makeLink("Why does this pod not start?", () => explainPod(`${holder.namespace}/${holder.pod}`))];
  return [makeList([history, ...explain]), output];
}

function explainPod(name: string): void {
  find<HTMLInputElement>("pod").value = name;
  const [namespace = "", pod = ""] = name.includes("/") ? name.split("/", 2) : ["default", name];
  const output = find("explanation");
  output.replaceChildren(make("p", "Asking …"));
  output.scrollIntoView({ block: "nearest" });
  void attempt(async () => {
    const { succeeds, lines } = await api.explain(namespace.trim(), pod.trim()).catch((error: unknown) => {
      output.replaceChildren();
      throw error;
    });
    // It may be unknown, or not be Berth's to say: the first line is the outcome.
    const verdict = make("p", succeeds ? "An ADD of the pod would succeed." : lines[0]);
    verdict.className = "bad";
    output.replaceChildren(verdict, make("pre", lines.join("\n")));
  });
}

async function showPool(name: string): Promise<void> {
  const pool = answer?.pools.find((each) => each.name === name);
  if (pool === undefined) return;
  const usage = await api.usage(name);
  find("about").replaceChildren(...describePool(pool), ...describeUsage(usage));
  showAlerts(pool, answer?.problems ?? []);
}

/** Above the map: the problems of the pool, and of the server. An alert about addresses leads to them. */
function showAlerts(pool: PoolsAnswer["pools"][number], problems: readonly string[]): void {
  const items = findTroubles(pool).map(({ text, isQuarantine }) =>
    isQuarantine ? makeLink(text, goToQuarantined) : make("span", text),
  );
  const all = [...items, ...problems.map((problem) => make("span", problem))];
  find("alerts").replaceChildren(...all.map((item) => make("li", item)));
  find("alerts").hidden = all.length === 0;
}

function goToQuarantined(): void {
  const { model } = view;
  const number = model && findQuarantined(model)[0];
  if (number === undefined) return;
  view.fit({ first: number - (number % 256), bits: 8 });
  void choose(number);
}

function showLegend(model: MapModel): void {
  const counts = model.count({ first: 0, bits: Math.ceil(Math.log2(Math.max(1, model.size))) });
  const legend = find("legend");
  const shown = KINDS.filter((kind) => counts[kind] > 0);
  if (legend.childElementCount !== shown.length) {
    legend.replaceChildren(...shown.map((kind) => make("li", swatchOf(kind), make("span"))));
  }
  for (const [at, kind] of shown.entries()) {
    const text = legend.children[at]?.querySelector("span");
    if (text) text.textContent = `${KIND_TEXTS[kind]}: ${counts[kind].toLocaleString("en")}`;
  }
}

/** A square of a kind as the map draws it. */
function swatchOf(kind: (typeof KINDS)[number]): HTMLCanvasElement {
  const canvas = make("canvas");
  canvas.width = canvas.height = 16;
  canvas.setAttribute("aria-hidden", "true");
  const image = new ImageData(16, 16);
  TilePainter.swatch(new Uint32Array(image.data.buffer), palette(), KINDS.indexOf(kind));
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return canvas;
}

/** The table shows the same as the map: the addresses of a small block, the parts of a large one. */
async function showTable(model: MapModel, block: Block): Promise<void> {
  const turn = ++tableTurn;
  if (block.bits > LISTED_BITS) {
    fillTable(find("table"), `Parts of ${model.describe(block)}`, ...partsOf(model, block));
    return;
  }
  const end = Math.min(block.first + 2 ** block.bits, model.size);
  const { addresses } = await api.addresses(model.header.pool, model.addressAt(block.first), model.addressAt(end - 1));
  if (turn !== tableTurn) return;
  const byAddress = new Map(addresses.map((record) => [record.address, record]));
  const rows = Array.from({ length: end - block.first }, (_, at) => {
    const number = block.first + at;
    const address = model.addressAt(number);
    const record = byAddress.get(address);
    const kind = KIND_TEXTS[KINDS[model.kindAt(number)] ?? "Free"] + placeNote(model, number);
    const holder = record?.holders[0];
    return [
      makeLink(address, () => void choose(number)),
      kind,
      holder && `${holder.namespace}/${holder.pod}`,
      holder?.interface,
      holder?.node,
      record?.workload,
      record?.mac,
    ];
  });
  const heads = ["Address", "State", "Pod", "Interface", "Node", "Workload", "MAC address"];
  fillTable(find("table"), `Addresses of ${model.describe(block)}`, heads, rows);
}

/** Returns heads and rows of the parts. A kind that none of them has needs no column. */
function partsOf(model: MapModel, { first, bits }: Block) {
  const parts = Array.from({ length: 16 }, (_, at) => ({ first: first + at * 2 ** (bits - 4), bits: bits - 4 }));
  const counted = parts.filter((part) => part.first < model.size).map((part) => ({ part, counts: model.count(part) }));
  const kinds = KINDS.filter((kind) => counted.some(({ counts }) => counts[kind] > 0));
  const rows = counted.map(({ part, counts }) => {
    const link = makeLink(model.describe(part), () => view.fit(part));
    return [link, ...kinds.map((kind) => counts[kind].toLocaleString("en"))];
  });
  return [["Part", ...kinds.map((kind) => KIND_TEXTS[kind])], rows] as const;
}

async function search(text: string): Promise<void> {
  const found = await api.search(text);
  const section = find("results");
  section.hidden = false;
  const open = (pool: string, address?: string) => () => {
    void attempt(async () => {
      if (pools.value !== pool) {
        pools.value = pool;
        await openPool();
      }
      const number =
        address === undefined ? undefined : view.model?.numberOf(parseIp(address) ?? { family: 4, value: -1n });
      if (number === undefined) return;
      view.fit({ first: Math.floor(number / 256) * 256, bits: 8 });
      await choose(number);
    });
  };
  section.replaceChildren(...describeResults(text, found, open));
}

pools.addEventListener("change", () => void attempt(openPool));
find("search").addEventListener("submit", (event) => {
  event.preventDefault();
  void attempt(() => search(find<HTMLInputElement>("query").value));
});
find("explain").addEventListener("submit", (event) => {
  event.preventDefault();
  explainPod(find<HTMLInputElement>("pod").value);
});
find("access").addEventListener("submit", (event) => {
  event.preventDefault();
  const namespaces = find<HTMLInputElement>("namespaces")
    .value.split(/[\s,]+/)
    .filter((name) => name !== "");
  api.credentials = { token: find<HTMLInputElement>("token").value.trim(), namespaces };
  void attempt(loadPools);
});
find("in").addEventListener("click", () => view.zoom(2));
find("out").addEventListener("click", () => view.zoom(0.5));
find("all").addEventListener("click", () => view.model && view.fit({ first: 0, bits: 2 * view.model.levels }));
for (const query of [dark, print]) {
  query.addEventListener("change", () => {
    view.palette = palette();
    find("legend").replaceChildren();
    if (view.model !== undefined) showLegend(view.model);
    view.drawNow();
  });
}
addEventListener("hashchange", () => {
  const { pool } = placeOfLink();
  if (pool !== undefined && pool !== pools.value && answer?.pools.some(({ name }) => name === pool)) {
    pools.value = pool;
    void attempt(openPool);
  } else goToLink();
});
void attempt(loadPools).finally(() => refreshIn(REFRESH_MS));
