/** Headless Chromium, with a fresh home and profile, for pages that a test or an embedding serves. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { eventually } from "./waiting.ts";

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

async function openChromium() {
  // Tests without a browser do not wait for its driver.
  const { chromium } = await import("playwright-core");
  const home = mkdtempSync(join(tmpdir(), "berth-chromium-"));
  const remove = (): void => rmSync(home, { recursive: true, force: true });
  const env = { ...process.env, HOME: home };
  const launching = chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS, env });
  launching.catch(remove);
  const browser = await launching;
  return { browser, close: () => browser.close().finally(remove) };
}

/** Calls `use` with a browser; then closes it. */
export async function withChromium<T>(use: (browser: Browser) => Promise<T>): Promise<T> {
  const { browser, close } = await openChromium();
  return use(browser).finally(close);
}

/** That of all visits of this process, from the first one on. */
let shared: ReturnType<typeof openChromium> | undefined;

/** After the last visit. */
export async function closeBrowser(): Promise<void> {
  const { close } = (await shared) ?? {};
  shared = undefined;
  await close?.();
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

/** Opens the page, with a profile of its own, and calls `use` with it; see {@link closeBrowser}. */
export async function visitPage<T>(
  url: string,
  use: (visit: LabPage) => Promise<T>,
  { width = 1280, height = 900, colorScheme = "light", hasOwnCertificate = false }: VisitOptions = {},
): Promise<T> {
  shared ??= openChromium();
  const { browser } = await shared;
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
  try {
    await page.goto(url);
    return await use({ page, browser, errors, foreign });
  } finally {
    await page.close();
  }
}

/** Throws unless the element's text has the wanted one within 20 seconds. */
export async function shows({ page }: LabPage, selector: string, wanted: string): Promise<void> {
  const read = async (): Promise<string> => (await page.textContent(selector)) ?? "";
  const text = await eventually(read, (found) => found.includes(wanted), 20_000);
  if (!text.includes(wanted))
    throw new Error(`${selector} has ${JSON.stringify(text)}, want ${JSON.stringify(wanted)}`);
}
