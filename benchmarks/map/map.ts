/**
 * The benchmark `map`: the address map of a /8 with 8 million addresses in use, in headless Chromium without a
 * graphics processor.
 * Effects: a server on loopback; Chromium; the screenshot benchmarks/results/map.png.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";
import { root } from "../../scripts/setup/paths.mjs";
import { type LabPage, visitPage } from "../../test/lab/browser.ts";
import { formatFigure } from "../../test/lab/statistics.ts";
import { requireUninterrupted } from "../harness/interruption.ts";
import type { Bench, BenchOptions, BenchReport, Target } from "../harness/report.ts";
import { type ServedMap, serveMap } from "./serve-map.ts";

export const mapBench: Bench = { name: "map", run: runMap };

const USED = 8_000_000;
const COOLING = 20_000;
const SIZE_TEXT = "16,777,216 addresses (2.097 MB, which is 2 MiB)";

/** Before the page's own scripts: how long the work of each frame takes, and when it starts. */
const WATCH_FRAMES = `
  globalThis.frames = [];
  const own = requestAnimationFrame.bind(globalThis);
  globalThis.requestAnimationFrame = (work) => own((time) => {
    const start = performance.now();
    work(time);
    frames.push([start, performance.now() - start]);
  });`;

/** Asks for a frame each time the screen has one, whether or not the page draws: when each came. */
const COUNT_FRAMES = (ms: number) => `new Promise((resolve) => {
  const times = [];
  const end = performance.now() + ${ms};
  const next = (time) => { times.push(time); if (performance.now() < end) own2(next); else resolve(times); };
  const own2 = globalThis.requestAnimationFrame;
  own2(next);
})`;

interface Figures {
  readonly firstMs: readonly number[];
  /** From the same moment until nothing is drawn coarsely any more. */
  readonly sharpMs: readonly number[];
  readonly frameMs: readonly number[];
  readonly framesPerSecond: number;
  readonly quietFramesPerSecond: number;
  readonly heapMb: number;
  readonly mapBytes: number;
  readonly pooledMapBytes: number;
  readonly pageBytes: number;
}

async function runMap({ quick }: BenchOptions): Promise<BenchReport> {
  const served = await serveMap({ used: USED, cooling: COOLING });
  try {
    const figures = await measure(served, quick);
    return reportOf(figures);
  } finally {
    await served.close();
  }
}

async function measure(served: ServedMap, quick: boolean): Promise<Figures> {
  const firstMs: number[] = [];
  const sharpMs: number[] = [];
  for (let visit = 0; visit < (quick ? 2 : 7); visit++) {
    requireUninterrupted();
    await visitPage(served.url, async ({ page }) => {
      firstMs.push(await firstDrawing(page));
      sharpMs.push(await sharpDrawing(page));
    });
  }
  const rest = await visitPage(
    served.url,
    async (visit) => {
      const { page } = visit;
      await page.reload();
      await firstDrawing(page);
      await page.waitForFunction("document.querySelector('#where').textContent !== 'Loading'");
      if (!quick) await page.screenshot({ path: join(root, "benchmarks", "results", "map.png") });
      const frameMs = await zoomAndPan(page, quick ? 2 : 8);
      const seconds = quick ? 3 : 10;
      const quietFramesPerSecond = await framesIn(page, seconds);
      served.isChanging = true;
      await sleep(1_000);
      const framesPerSecond = await framesIn(page, seconds);
      served.isChanging = false;
      return { frameMs, quietFramesPerSecond, framesPerSecond, heapMb: await heapOf(visit) };
    },
    { initScript: WATCH_FRAMES },
  );
  const { mapBytes, pooledMapBytes, pageBytes } = served;
  return { firstMs, sharpMs, ...rest, mapBytes, pooledMapBytes, pageBytes };
}

/** Milliseconds from the arrival of the map's bytes to the first picture on the canvas. */
async function firstDrawing(page: Page): Promise<number> {
  await page.waitForFunction("performance.getEntriesByName('berth:first-drawing').length > 0");
  return page.evaluate<number>("performance.getEntriesByName('berth:first-drawing')[0].duration");
}

/** Milliseconds from the arrival of the map's bytes until all tiles in view are painted. */
async function sharpDrawing(page: Page): Promise<number> {
  await page.waitForFunction("performance.getEntriesByName('berth:sharp').length > 0");
  const since = "performance.getEntriesByName('berth:first-drawing')[0].startTime";
  return page.evaluate<number>(`performance.getEntriesByName('berth:sharp')[0].startTime - ${since}`);
}

/** Wheel and drag, to one address and back; the work of each frame. */
async function zoomAndPan(page: Page, rounds: number): Promise<number[]> {
  await page.evaluate("frames.length = 0");
  for (let round = 0; round < rounds; round++) {
    requireUninterrupted();
    await page.mouse.move(300 + 40 * (round % 5), 300 + 30 * (round % 4));
    for (let turn = 0; turn < 30; turn++) {
      await page.mouse.wheel(0, -120);
      await sleep(16);
    }
    await page.mouse.down();
    await page.mouse.move(500, 520, { steps: 20 });
    await page.mouse.up();
    for (let turn = 0; turn < 30; turn++) {
      await page.mouse.wheel(0, 120);
      await sleep(16);
    }
  }
  return page.evaluate<number[]>("frames.map(([, ms]) => ms)");
}

async function framesIn(page: Page, seconds: number): Promise<number> {
  const times = await page.evaluate<number[]>(COUNT_FRAMES(1_000 * seconds));
  return (1_000 * (times.length - 1)) / ((times.at(-1) ?? 0) - (times[0] ?? 0));
}

/** Of JavaScript, of the browser's objects, and of typed arrays. */
async function heapOf({ page }: LabPage): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const usage = (await session.send("Runtime.getHeapUsage")) as unknown as Readonly<Record<string, number>>;
  const parts = ["usedSize", "embedderHeapUsedSize", "backingStorageSize"].map((name) => usage[name] ?? Number.NaN);
  return parts.reduce((sum, bytes) => sum + bytes, 0) / 1e6;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

function reportOf(figures: Figures): BenchReport {
  const {
    firstMs,
    sharpMs,
    frameMs,
    framesPerSecond,
    quietFramesPerSecond,
    heapMb,
    mapBytes,
    pooledMapBytes,
    pageBytes,
  } = figures;
  const most = (what: string, value: number, limit: number, unit: string): Target => ({
    what,
    wanted: `≤ ${limit} ${unit}`,
    measured: `${formatFigure(value)} ${unit}`,
    isMet: value <= limit,
  });
  return {
    tables: [],
    targets: [
      most("the page, uncompressed", pageBytes / 1000, 150, "KB"),
      most("the map, addresses in pools of /20", pooledMapBytes / 1e6, 2, "MB"),
      most("the map, addresses all over the /8 by hash", mapBytes / 1e6, 2, "MB"),
      most("heap with typed arrays, after a collection", heapMb, 30, "MB"),
      {
        what: "frames with 1,000 changes a second",
        wanted: "≥ 30 per second",
        measured: `${formatFigure(framesPerSecond)} per second (${formatFigure(quietFramesPerSecond)} without changes)`,
        isMet: framesPerSecond >= 30,
      },
    ],
    notes: [
      `A /8 with ${USED / 1e6} million addresses in use, ${COOLING / 1000},000 of them cooling: each the first free one from a hash on, as Berth chooses in one pool. That is random: with 47.7 percent in use no encoding can be shorter than 2.09 MB, 0.998 bits for each address, and the core's is one bit for each of the ${SIZE_TEXT}, and ${formatFigure((mapBytes - 2 ** 21) / 1000)} KB for the cooling ones and the chunks' heads. In pools of their own, half of them filled in ascending order with 2 percent released since, the others filled to 70 to 97 percent by hash, as many addresses take ${formatFigure(pooledMapBytes / 1e6)} MB.`,
      `The first drawing includes reading the map's bytes. It is coarse where tiles are not painted yet; all are sharp ${formatFigure(quantile(sharpMs, 0.5))} ms after the bytes came (middle visit; slowest ${formatFigure(Math.max(...sharpMs))}). First drawing: middle visit ${formatFigure(quantile(firstMs, 0.5))} ms, slowest ${formatFigure(Math.max(...firstMs))}. ${frameMs.length} frames; p50 ${formatFigure(quantile(frameMs, 0.5))} ms, p95 ${formatFigure(quantile(frameMs, 0.95))}, slowest ${formatFigure(Math.max(...frameMs))} ms.`,
      "Headless Chromium 1280 × 900 without a graphics processor: it fills and scales pictures with the processor, partly in threads of its own, which a frame's work does not include.",
    ],
    versions: {},
    raw: figures,
  };
}
