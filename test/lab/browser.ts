/** Headless Chromium, with a fresh home and profile, for pages that a test or an embedding serves. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Calls `use` with a browser; then closes it. */
export async function withChromium<T>(use: (browser: Browser) => Promise<T>): Promise<T> {
  // What needs no browser does not wait for its driver.
  const { chromium } = await import("playwright-core");
  const home = mkdtempSync(join(tmpdir(), "berth-chromium-"));
  try {
    const env = { ...process.env, HOME: home };
    const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS, env });
    try {
      return await use(browser);
    } finally {
      await browser.close();
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

export interface LabPage {
  readonly page: Page;
  readonly browser: Browser;
  /** Errors of the page: those in its console, and those that it does not catch. */
  readonly errors: readonly string[];
  /** Requests to any other origin than that of the first page. */
  readonly foreign: readonly string[];
}

interface VisitOptions {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: "light" | "dark";
  /** The server's certificate is its own. */
  readonly hasOwnCertificate?: boolean;
}

/** Opens the page and calls `use` with it; then closes the browser. */
export async function visitPage<T>(
  url: string,
  use: (visit: LabPage) => Promise<T>,
  { width = 1280, height = 900, colorScheme = "light", hasOwnCertificate = false }: VisitOptions = {},
): Promise<T> {
  return withChromium(async (browser) => {
    const page = await browser.newPage({
      viewport: { width, height },
      colorScheme,
      ignoreHTTPSErrors: hasOwnCertificate,
    });
    const errors: string[] = [];
    const foreign: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") errors.push(message.text());
    });
    page.on("request", (request) => {
      const asked = new URL(request.url());
      if (asked.protocol !== "data:" && asked.origin !== new URL(url).origin) foreign.push(request.url());
    });
    await page.goto(url);
    return use({ page, browser, errors, foreign });
  });
}
