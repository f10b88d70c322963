/** The documentation as a site: built, served below a path, and used in a browser. */

import { mkdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { buildSite, type Site } from "../../scripts/docs/site.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { closeBrowser, type LabPage, visitPage } from "../lab/browser.ts";

const BELOW = "/some/where/";
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const MADE = join(root, "dist", "screenshots");

let site: Site;
let files: ReadonlyMap<string, Uint8Array>;
let server: Server;
let base = "";

beforeAll(async () => {
  site = buildSite();
  files = new Map(site.entries.map(({ path, content = new Uint8Array() }) => [path, content]));
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://localhost");
    const path = pathname.slice(BELOW.length) || "index.html";
    const content = pathname.startsWith(BELOW) ? files.get(decodeURIComponent(path)) : undefined;
    response.writeHead(content === undefined ? 404 : 200, { "content-type": TYPES[extname(path)] ?? "text/plain" });
    response.end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}${BELOW}`;
  mkdirSync(MADE, { recursive: true });
});
afterAll(() => server?.close());
afterAll(closeBrowser);

const textOf = (path: string): string => Buffer.from(files.get(path) ?? []).toString();
const anchorsOf = (path: string): string[] => [...textOf(path).matchAll(/ id="([^"]+)"/g)].map(([, id = ""]) => id);

const readText = (path: string): string => readFileSync(join(root, path), "utf8");

it("every runbook_url, and every link of the dashboard, is an anchor of the site", () => {
  const alerts = [...readText("deploy/chart/berth/files/alerts.yaml").matchAll(/runbook_url: (\S+)/g)];
  const links = [...readText("deploy/chart/berth/files/dashboard.json").matchAll(/"url": "(https:[^"]+)"/g)];
  expect([alerts.length > 10, links.length > 3]).toEqual([true, true]);
  for (const [, url = ""] of [...alerts, ...links]) {
    const [page = "", anchor] = url.replace(`${manifest.homepage}/docs/`, "").split("#");
    expect(anchorsOf(page), url).toContain(anchor);
  }
});

it("every link of a page to another leads to a file and an anchor of it", () => {
  const pages = [...files.keys()].filter((path) => path.endsWith(".html") && path !== "404.html");
  expect(pages.length).toBeGreaterThan(60);
  const broken = pages.flatMap((page) => {
    const links = [...textOf(page).matchAll(/<a [^>]*?href="([^"]+)"/g)].map(([, href = ""]) => href);
    return links.flatMap((href) => {
      const url = new URL(href.replaceAll("&amp;", "&"), `http://site/${page}`);
      if (url.host !== "site") return [];
      const target = url.pathname.slice(1) || "index.html";
      const anchor = decodeURIComponent(url.hash.slice(1));
      const isThere = files.has(target) && (anchor === "" || anchorsOf(target).includes(anchor));
      return isThere ? [] : [`${page}: ${href}`];
    });
  });
  expect(broken).toEqual([]);
});

async function findBarriers({ page }: LabPage): Promise<string[]> {
  await page.addScriptTag({ path: createRequire(import.meta.url).resolve("axe-core/axe.min.js") });
  return page.evaluate<string[]>(`axe.run().then(({ violations }) => violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`);
}

describe("in a browser, below a path", () => {
  it.each([
    ["light", "light", 1280, "index.html"],
    ["dark", "dark", 1280, "runbooks.html#berthpoolfull"],
    ["phone", "light", 390, "chart.html"],
    ["phone-table", "dark", 390, "resources.html"],
  ] as const)("%s: no error, no sideways scroll, no serious barrier", (name, colorScheme, width, path) =>
    visitPage(
      `${base}${path}`,
      async (visit) => {
        const { page } = visit;
        await page.waitForSelector(".VPDoc h1");
        await page.screenshot({ path: join(MADE, `site-${name}.png`) });
        expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
        expect(await findBarriers(visit)).toEqual([]);
        expect([visit.errors, visit.foreign]).toEqual([[], []]);
      },
      { colorScheme, width },
    ),
  );

  it("an alert's runbook is in view", () =>
    visitPage(`${base}runbooks.html#berthpoolfull`, async ({ page }) => {
      const top = () => page.evaluate<number>(`document.querySelector("#berthpoolfull").getBoundingClientRect().top`);
      await expect.poll(top).toBeLessThan(300);
      expect(await top()).toBeGreaterThanOrEqual(0);
    }));

  it("the search finds a word, and leads to its page", () =>
    visitPage(base, async (visit) => {
      const { page } = visit;
      await page.click(".VPNavBarSearch button");
      await page.fill("#localsearch-input", "cooldown");
      const found = page.locator(".VPLocalSearchBox .result", { hasText: "States of an address" });
      await found.waitFor();
      await page.screenshot({ path: join(MADE, "site-search.png") });
      await found.click();
      await page.waitForURL(/\/some\/where\/glossary\.html#/);
      await page.waitForSelector(".VPDoc h1:has-text('Glossary')");
      expect([visit.errors, visit.foreign]).toEqual([[], []]);
    }));

  it("links and the groups lead from page to page", () =>
    visitPage(base, async (visit) => {
      const { page } = visit;
      await page.click(".VPSidebar >> text=Runbooks");
      await page.waitForSelector(".VPDoc h1:has-text('Runbooks')");
      await page.goto(`${base}decisions/index.html`);
      await page.click(".VPDoc a[href*='0007']");
      await page.waitForSelector(".VPDoc h1:has-text('0007')");
      await page.click(".VPNavBarTitle a");
      await page.waitForSelector(".VPDoc h1:has-text('Documentation')");
      expect([visit.errors, visit.foreign]).toEqual([[], []]);
    }));
});
