/**
 * Headless Chromium with a page of the build's folder, served from loopback.
 * Effects: a server, and a Chromium with a fresh home and profile, while `use` runs.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import type { Page } from "playwright-core";
import { withChromium } from "../../test/lab/browser.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

/** Serves `site` at / and `given` at /given/; a folder there is the list of its names. */
function serve(site: string, given: string): Server {
  return createServer(({ url = "/" }, response) => {
    // The parser of URLs leaves no ".." in a path.
    const { pathname } = new URL(url, "http://localhost");
    const path = pathname.startsWith("/given/") ? join(given, pathname.slice("/given".length)) : join(site, pathname);
    const stat = statSync(path, { throwIfNoEntry: false });
    const type = stat?.isDirectory() ? ".json" : extname(path);
    response.writeHead(stat === undefined ? 404 : 200, { "content-type": TYPES[type] ?? "application/octet-stream" });
    if (stat === undefined) response.end();
    else response.end(stat.isDirectory() ? JSON.stringify(readdirSync(path).sort()) : readFileSync(path));
  });
}

export interface Visit<T> {
  /** The folder of the build, and what the page may read beside it. */
  readonly site: string;
  readonly given: string;
  readonly page: string;
  readonly use: (page: Page) => Promise<T>;
}

/** Opens a page; an error in its console, or one that it does not catch, ends the visit as an error here. */
export async function visit<T>({ site, given, page: path, use }: Visit<T>): Promise<T> {
  const server = serve(site, given);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await withChromium(async (browser) => {
      const page = await browser.newPage();
      const failure = new Promise<never>((_, reject) => {
        page.on("pageerror", reject);
        page.on("console", (message) => {
          if (message.type() === "error") reject(new Error(`In the page's console: ${message.text()}`));
        });
      });
      const { port } = server.address() as AddressInfo;
      const visited = page.goto(`http://127.0.0.1:${port}/${path}`).then(() => use(page));
      return Promise.race([failure, visited]);
    });
  } finally {
    server.close();
  }
}

/** Reads the findings of a page of page.ts: its lines go to `say`, its complaint is the result. */
export async function readReport(page: Page, say: (line: string) => void): Promise<string | undefined> {
  await page.waitForSelector("body[data-state=done]", { state: "attached", timeout: 100_000 });
  const lines = (await page.textContent("#lines")) ?? "";
  for (const line of lines.split("\n").filter(Boolean)) say(line);
  return (await page.textContent("#complaint")) || undefined;
}
