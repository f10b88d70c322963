/**
 * The page of the address map with a data centre's pools: the user's view and actions. Makes the documents' pictures.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VERSION } from "../../../../host/bin/version.ts";
import { root } from "../../../../scripts/setup/paths.mjs";
import { closeBrowser, type LabPage, shows, visitPage } from "../../../../test/lab/browser.ts";
import { eventually } from "../../../../test/lab/waiting.ts";
import { DARK, LIGHT } from "../../page/colours.ts";
import { KINDS, type Kind } from "../../page/map-model.ts";
import { type MapScene, openMapScene } from "../map-scene.ts";

/** `SCREENSHOTS=docs` renews those of the documents. */
const MADE = join(root, "dist", "screenshots");
const PICTURES = process.env.SCREENSHOTS === undefined ? MADE : join(root, process.env.SCREENSHOTS);

let scene: MapScene;
beforeAll(async () => {
  scene = await openMapScene();
  mkdirSync(MADE, { recursive: true });
});
afterAll(() => scene?.[Symbol.asyncDispose]());
afterAll(closeBrowser);

const at = (place: string, pool = "servers") => `${scene.url}/#pool=${pool}&at=${encodeURIComponent(place)}`;

const groundOf = (kind: Kind) => LIGHT.ground[KINDS.indexOf(kind)] ?? 0;

/** Counts the pixels of the canvas that have exactly this colour. */
async function countPixels({ page }: LabPage, colour: number): Promise<number> {
  const [red, green, blue] = [colour >>> 16, (colour >>> 8) & 255, colour & 255];
  return page.evaluate<number>(`(() => {
    const canvas = document.querySelector("#canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4)
      if (data[at] === ${red} && data[at + 1] === ${green} && data[at + 2] === ${blue}) count++;
    return count;
  })()`);
}

describe("a picture", () => {
  it.each([
    ["light", 1440, 1120, LIGHT],
    ["dark", 1440, 1120, DARK],
    ["light", 360, 900, LIGHT],
  ] as const)(
    "%s, %i pixels wide, has all states, names of prefixes, alerts and a legend",
    (colorScheme, width, height, palette) =>
      visitPage(
        scene.url,
        async (visit) => {
          const { page } = visit;
          await shows(visit, "#legend", "bound to a pod: 23,755");
          await shows(visit, "#table caption", "Parts of 10.20.0.0/16");
          // An address in the block of "mail", without moving the view.
          const box = await page.locator("#canvas").boundingBox();
          const { x = 0, y = 0, width: across = 0, height: down = 0 } = box ?? {};
          const side = 0.96 * Math.min(across, down);
          await page.mouse.click(x + across / 2 - 0.38 * side, y + down / 2 + 0.22 * side);
          await shows(visit, "#chosen", "mail/mail-");
          for (const kind of ["Free", "Bound", "Outside", "Reserved", "Kept"] satisfies Kind[]) {
            expect(await countPixels(visit, palette.ground[KINDS.indexOf(kind)] ?? 0), kind).toBeGreaterThan(50);
          }
          for (const kind of ["cooling after a release: 939", "quarantined: 4", "kept for a workload: 1,102"])
            await shows(visit, "#legend", kind);
          await shows(visit, "#about", "In the last 24 h");
          expect(await page.locator(".chart span").allTextContents()).toEqual([
            expect.stringMatching(/^2\d,\d{3}$/),
            expect.stringMatching(/^2\d,\d{3}$/),
            "24 h ago",
            "now",
          ]);
          await shows(visit, "h1", `Berth ${VERSION} address map`);
          const points = await page.getAttribute("#about polyline", "points");
          const heights = points?.split(" ").map((point) => Number(point.split(",")[1])) ?? [];
          expect((await page.locator(".chart svg").boundingBox())?.height).toBeLessThan(150);
          expect([heights.length, Math.min(...heights), Math.max(...heights)]).toEqual([1_440, 2, 98]);
          const path = width < 500 ? join(MADE, "map-phone.png") : join(PICTURES, `map-${colorScheme}.png`);
          await page.evaluate("scrollTo(0, 0)");
          await page.screenshot({ path, fullPage: width < 500 });
          expect(visit.errors).toEqual([]);
        },
        { colorScheme, width, height },
      ),
  );

  it("of a place has the colours and the patterns of its states", () =>
    visitPage(at("10.20.71.4"), async (visit) => {
      for (const [place, kind] of [
        ["10.20.71.4", "Quarantined"],
        ["10.20.58.16", "Kept"],
        ["10.20.44.16", "Cooling"],
        ["10.20.176.1", "Reserved"],
      ] as const) {
        await visit.page.evaluate(`location.hash = "#pool=servers&at=${place}"`);
        await shows(visit, "#table caption", `Addresses of ${place.replace(/\.\d+$/, ".")}`);
        const number = KINDS.indexOf(kind);
        for (const colours of [LIGHT.ground, LIGHT.ink])
          expect(await countPixels(visit, colours[number] ?? 0), kind).toBeGreaterThan(500);
      }
    }));
});

/** Returns the words of the table that are on two lines. */
const BROKEN_WORDS = `[...document.querySelectorAll("#table tr > *")].flatMap((cell) => {
  const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode();
  return [...(text?.data ?? "").matchAll(/[^\\s/-]+/g)].flatMap(({ 0: word, index }) => {
    const range = document.createRange();
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    return new Set([...range.getClientRects()].map(({ top }) => top)).size > 1 ? [word] : [];
  });
})`;

it.each([1_280, 1_440, 1_920])("a table on a screen of %i pixels breaks no word, and has no column of zeros", (width) =>
  visitPage(
    scene.url,
    async (visit) => {
      const { page } = visit;
      await shows(visit, "#table caption", "Parts of 10.20.0.0/16");
      expect(await page.evaluate(BROKEN_WORDS)).toEqual([]);
      const heads = await page.locator("#table thead th").allTextContents();
      expect(heads).toContain("quarantined");
      expect(heads).not.toContain("another cluster's");
      await page.evaluate(`location.hash = "#pool=servers&at=10.20.71.4"`);
      await shows(visit, "#table caption", "Addresses of 10.20.71.");
      expect(await page.evaluate(BROKEN_WORDS)).toEqual([]);
    },
    { width, height: 1_000 },
  ),
);

it("blocks of other clusters stand apart, hatched, with the cluster's name", () =>
  visitPage(at("10.6.0.0/24", "lan"), async (visit) => {
    await shows(visit, "#legend", "another cluster's: 48");
    await shows(visit, "#legend", "free: 32");
    await shows(visit, "#legend", "outside of the pool: 176");
    const kind = KINDS.indexOf("Elsewhere");
    for (const colours of [LIGHT.ground, LIGHT.ink])
      expect(await countPixels(visit, colours[kind] ?? 0)).toBeGreaterThan(500);
    await visit.page.evaluate(`location.hash = "#pool=lan&at=10.6.0.20"`);
    await shows(visit, "#table", "another cluster's, west");
    expect(visit.errors).toEqual([]);
  }));

it("finds an address, and parts of the names of pods, workloads, nodes, MAC addresses and pools", () =>
  visitPage(scene.url, async (visit) => {
    const { page } = visit;
    await shows(visit, "#where", "servers");
    for (const [text, wanted] of [
      ["10.20.9.77", "10.20.9.77, quarantined"],
      ["video-123", "video/video-123"],
      ["StatefulSet db/db", "StatefulSet db/db, member db-"],
      ["node-07", " on node-07"],
      ["0a:58:0a:14:23:14", "10.20.35.20, bound to a pod"],
      ["edge", "Pool edge"],
      // A tenant with more addresses than are listed.
      ["video/", "There are more; search for more of the name."],
    ] as const) {
      await page.fill("#query", text);
      await page.press("#query", "Enter");
      await shows(visit, "#results h2", text);
      await shows(visit, "#results", wanted);
    }
    await page.fill("#query", "edge");
    await page.press("#query", "Enter");
    await page.click('#results button:has-text("Pool edge")');
    await shows(visit, "#where", "edge: 192.0.2.0/27");
    await shows(visit, "#alerts", "The pool is nearly full: 1 of 16 addresses are free.");
    // Links lead from one place to another.
    await page.evaluate(`location.hash = "#pool=servers-v6&at=fd00:20::4:10"`);
    await shows(visit, "#where", "servers-v6: fd00:20::4:");
    await page.evaluate(`location.hash = "#pool=servers&at=10.20.128.0/18"`);
    await shows(visit, "#where", "servers: 10.20.128.0/18");
    expect(visit.errors).toEqual([]);
  }));

it("an alert leads to the addresses in quarantine, and a new conflict comes by itself", () =>
  visitPage(scene.url, async (visit) => {
    const { page } = visit;
    await shows(visit, "#alerts", "ProxyArpSuspected (SameMachineAnswers): 02:00:5e:00:00:66 answers for 4 addresses");
    await page.click('#alerts button:has-text("4 addresses are in quarantine")');
    await shows(visit, "#chosen", "10.20.9.77");
    await shows(visit, "#chosen", "quarantined");
    await shows(visit, "#chosen", "02:00:5e:00:00:66");
    await shows(visit, "#where", "10.20.9.0/24");
    scene.change("10.20.200.1", "Quarantined");
    try {
      await shows(visit, "#alerts", "5 addresses are in quarantine");
      await shows(visit, "#legend", "quarantined: 5");
    } finally {
      scene.change("10.20.200.1", undefined);
    }
    await shows(visit, "#legend", "quarantined: 4");
    expect(await page.textContent("#pool option:checked")).toBe("servers (2 alerts)");
  }));

it("a change after one outside of the islands shown is of the same address", () =>
  visitPage(`${scene.url}/#pool=servers-v6`, async (visit) => {
    await shows(visit, "#legend", "bound to a pod: 4");
    scene.change("fd00:20::2:1", "Bound");
    await shows(visit, "#legend", "bound to a pod: 5");
    scene.change("fd00:20::4:11", undefined);
    try {
      await shows(visit, "#legend", "bound to a pod: 4");
    } finally {
      scene.change("fd00:20::2:1", undefined);
    }
  }));

it("lists all pools, the fullest first, and opens one at the addresses that it hands out", () =>
  visitPage(scene.url, async (visit) => {
    const { page } = visit;
    await shows(visit, "#where", "servers: 10.20.0.0/16");
    const rows = await page.locator("#pools tbody tr").allTextContents();
    expect(rows.map((text) => text.split(" ")[0])).toEqual(["edge", "servers", "servers-v6", "dmz", "lan"]);
    expect(rows[0]).toContain("1 of 16");
    await page.click('#pools button:has-text("dmz")');
    await shows(visit, "#where", "dmz: 10.30.1");
    const free = await countPixels(visit, groundOf("Free"));
    // A square has some 4,000 pixels; of the whole subnet no square of the pool would be seen.
    expect(free).toBeGreaterThan(10_000);
    await page.click("#all");
    await shows(visit, "#where", "dmz: 10.30.0.0/16");
    expect(visit.errors).toEqual([]);
  }));

it("two fingers zoom in and out", () =>
  visitPage(scene.url, async (visit) => {
    const { page } = visit;
    await shows(visit, "#where", "servers: 10.20.0.0/16");
    const session = await page.context().newCDPSession(page);
    await session.send("Emulation.setTouchEmulationEnabled", { enabled: true, maxTouchPoints: 2 });
    const box = await page.locator("#canvas").boundingBox();
    const [x, y] = [(box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + (box?.height ?? 0) / 2];
    const touch = (type: "touchStart" | "touchMove" | "touchEnd", apart: number) =>
      session.send("Input.dispatchTouchEvent", {
        type,
        touchPoints:
          type === "touchEnd"
            ? []
            : [
                { x: x - apart, y, id: 0 },
                { x: x + apart, y, id: 1 },
              ],
      });
    const pinch = async (from: number, to: number) => {
      await touch("touchStart", from);
      for (let step = 1; step <= 10; step++) await touch("touchMove", from + ((to - from) * step) / 10);
      await touch("touchEnd", to);
    };
    await pinch(30, 240);
    const length = async (): Promise<number> => Number((await page.textContent("#where"))?.split("/")[1]);
    await expect.poll(length, { timeout: 30_000 }).toBeGreaterThanOrEqual(20);
    await pinch(240, 30);
    await shows(visit, "#where", "servers: 10.20.0.0/16");
  }));

it("is printed in light colours, with the table and without parts for the screen", () =>
  visitPage(
    scene.url,
    async (visit) => {
      const { page } = visit;
      await shows(visit, "#table caption", "Parts of 10.20.0.0/16");
      const bound = KINDS.indexOf("Bound");
      expect(await countPixels(visit, DARK.ground[bound] ?? 0)).toBeGreaterThan(1_000);
      await page.emulateMedia({ media: "print" });
      await eventually(
        () => countPixels(visit, LIGHT.ground[bound] ?? 0),
        (count) => count > 1_000,
      );
      const isVisible = (selector: string) => page.isVisible(selector);
      expect(await Promise.all(["#search", "#tools", "#keys"].map(isVisible))).toEqual([false, false, false]);
      expect(await Promise.all(["#canvas", "#legend", "#table", "#alerts"].map(isVisible))).toEqual([
        true,
        true,
        true,
        true,
      ]);
      expect((await page.pdf()).length).toBeGreaterThan(20_000);
    },
    { colorScheme: "dark" },
  ));
