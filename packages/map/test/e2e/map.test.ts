/** The address map of an agent without a cluster, as a user of a browser meets it. */
import { get } from "node:http";
import { createRequire } from "node:module";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, type LabPage, shows, visitPage } from "../../../../test/lab/browser.ts";
import { ipPool, manifest, podArgs, vendorConf } from "../../../../test/lab/manifests.ts";
import { type NetnsWorld, openAlone, withWorld } from "../../../../test/lab/netns/world.ts";
import { eventually, PATIENCE } from "../../../../test/lab/waiting.ts";
import { addressesAnswer, poolsAnswer, searchAnswer, usageAnswer } from "../../server/map-records.ts";

const CONFIG = {
  "conf.yaml": vendorConf({ allocationCooldown: "60s", allowSingleFamily: true }),
  "blue.yaml": ipPool("blue", "10.6.0.0/20", {
    ips: ["10.6.0.0-10.6.7.255"],
    gateway: "10.6.0.1",
    selection: "ascending",
    default: true,
  }),
  "green.yaml": ipPool("green", "fd00:6::/64", { ips: ["fd00:6::10-fd00:6::ffff"] }),
  "lab.yaml": manifest("ReservedIP", "lab-machines", { ips: ["10.6.1.0-10.6.1.15"] }),
};
const HOSTILE = `<script>document.title="owned"</script>`;

let world: NetnsWorld;
/** Of the map, from the agent's log. */
let url: string;
beforeAll(async () => {
  world = await openAlone(CONFIG, { args: ["--map-listen", "127.0.0.1:0"] });
  const find = () => /"map":"(?<url>http[^"]+)"/.exec(world.agent.stderr())?.groups?.url ?? "";
  url = await eventually(find, (found) => found !== "");
});
afterAll(() => world?.delete());
afterAll(closeBrowser);

/** Rules of axe-core that the page breaks: their names and elements. */
async function findBarriers({ page }: LabPage): Promise<string[]> {
  // The page's policy forbids other scripts in it, also axe's: the driver's own world is not bound by it.
  const source = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const world = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const contextId = world.executionContextId;
  const { readFileSync } = await import("node:fs");
  await session.send("Runtime.evaluate", { contextId, expression: readFileSync(source, "utf8") });
  const run = `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`;
  const { result } = await session.send("Runtime.evaluate", {
    contextId,
    expression: run,
    awaitPromise: true,
    returnByValue: true,
  });
  return result.value as string[];
}

const text = async (visit: LabPage, selector: string): Promise<string> =>
  (await visit.page.textContent(selector)) ?? "";

describe("the API", () => {
  it("gives answers of its schemas", async () => {
    const [address = ""] = await world.add("a", { pod: "shop/web-0" });
    const ask = async (path: string) => (await fetch(`${url}/api/v1/${path}`)).json();
    const find = async () => searchAnswer.parse(await ask("search?q=web-0")).addresses;
    await expect.poll(find, PATIENCE).toHaveLength(1);
    const { pools, mode, canExplain } = poolsAnswer.parse(await ask("pools"));
    expect([mode, canExplain, pools.map(({ name, states }) => [name, states])]).toEqual([
      "embedded",
      true,
      [
        ["blue", { Bound: 1 }],
        ["green", {}],
      ],
    ]);
    const { addresses } = addressesAnswer.parse(await ask(`addresses?pool=blue&first=10.6.0.0&last=10.6.15.255`));
    expect(addresses).toMatchObject([
      { address, state: "Bound", pool: "blue", holders: [{ namespace: "shop", pod: "web-0", interface: "eth0" }] },
    ]);
    expect(searchAnswer.parse(await ask(`search?q=${address}`)).pools).toEqual(["blue"]);
    expect(usageAnswer.parse(await ask("usage?pool=blue")).stepSeconds).toBe(60);
    expect(await ask("map?pool=red")).toEqual({ error: 'There is no pool "red"' });
    expect((await fetch(`${url}/api/v1/addresses?pool=blue&first=x&last=y`)).status).toBe(400);
  });

  it("is not for other sites, other methods, or pages under another name", async () => {
    const { port } = new URL(url);
    const answer = await fetch(url);
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'");
    expect(policy).not.toContain("unsafe");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    expect((await fetch(`${url}/api/v1/pools`, { headers: { "sec-fetch-site": "cross-site" } })).status).toBe(403);
    for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
      expect((await fetch(`${url}/api/v1/pools`, { method })).status, method).toBe(405);
    }
    const status = (host: string) =>
      new Promise<number>((resolve, reject) => {
        const options = { host: "127.0.0.1", port, path: "/api/v1/pools", headers: { host } };
        get(options, (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        }).on("error", reject);
      });
    expect(await status(`attacker.example:${port}`)).toBe(421);
    expect(await status(`localhost:${port}`)).toBe(200);
    expect((await fetch(`${url}/v1/release?address=10.6.0.2`)).status).toBe(404);
  });

  it("is off by default", () =>
    withWorld(CONFIG, async (world) => {
      await world.add("a");
      expect(world.agent.stderr()).not.toContain("address map");
    }));
});

describe("the page", () => {
  it("shows a pool, finds a pod, says whose an address is and was, and follows changes", async () => {
    const [address = ""] = await world.add("a", { pod: "shop/web-0" });
    await visitPage(url, async (visit) => {
      const { page } = visit;
      await shows(visit, "#legend", "bound to a pod: 1");
      await shows(visit, "#where", "blue: 10.6.0.0/20");
      expect(await text(visit, "#legend")).toContain("reserved: 16");
      expect(await text(visit, "#legend")).toContain("outside of the pool: 2,050");
      expect(await text(visit, "#table caption")).toBe("Parts of 10.6.0.0/20");
      await page.fill("#query", "web-0");
      await page.press("#query", "Enter");
      await page.click(`#results button:has-text("${address}, bound to a pod, shop/web-0")`);
      await shows(visit, "#chosen", "shop/web-0, eth0");
      await shows(visit, "#table caption", "Addresses of 10.6.0.0/24");
      const row = page.locator("#table tr", { hasText: "shop/web-0" });
      expect(await row.textContent()).toContain(`${address}bound to a pod`);
      expect(await page.locator("#table tr", { hasText: "10.6.0.1outside of the pool, the gateway" }).count()).toBe(1);
      await page.click("text=Which pod had this address?");
      await shows(visit, "#chosen", "shop/web-0, eth0, on");
      await page.click("text=Why does this pod not start?");
      await shows(visit, "#explanation", "An ADD of the pod would succeed.");
      // A change comes by itself.
      const [next = ""] = await world.add("b", { pod: "shop/web-1" });
      await shows(visit, "#legend", "bound to a pod: 2");
      await shows(visit, "#table", `${next}bound to a podshop/web-1`);
      await world.del("b");
      await shows(visit, "#legend", "cooling after a release: 1");
      await shows(visit, "#legend", "bound to a pod: 1");
      expect([visit.errors, visit.foreign]).toEqual([[], []]);
    });
  });

  it("is used with the keyboard alone, and a link leads to a place", async () => {
    await visitPage(`${url}/#pool=blue&at=10.6.1.8`, async (visit) => {
      const { page } = visit;
      await shows(visit, "#where", "10.6.1.0/26");
      await page.focus("#canvas");
      await page.keyboard.press("Enter");
      await shows(visit, "#chosen", "reserved, in ReservedIP lab-machines");
      await page.keyboard.press("-");
      await shows(visit, "#where", "10.6.1.0/24");
      await page.keyboard.press("Home");
      await shows(visit, "#where", "10.6.0.0/20");
      expect(new URL(page.url()).hash).toBe("#pool=blue&at=10.6.0.0%2F20");
      await page.keyboard.press("+");
      await shows(visit, "#where", "/22");
      const before = await text(visit, "#where");
      for (let press = 0; press < 2; press++) await page.keyboard.press("ArrowLeft");
      await expect.poll(() => text(visit, "#where"), PATIENCE).not.toBe(before);
      expect((await text(visit, "#where")).endsWith("/22")).toBe(true);
      await page.selectOption("#pool", "green");
      await shows(visit, "#where", "green");
      expect(visit.errors).toEqual([]);
    });
  });

  it("shows an IPv6 pool by its islands in use, and a new island by itself", async () => {
    const six = { ipam: { default_ipv6_ippool: ["green"], default_ipv4_ippool: ["blue"] } };
    await world.add("a", { pod: "shop/web-0", ...six });
    await visitPage(`${url}/#pool=green`, async (visit) => {
      await shows(visit, "#where", "green: fd00:6::");
      await shows(visit, "#legend", "free: 255bound to a pod: 1");
      const [, address = ""] = await world.add("b", { pod: "shop/web-1", ...six });
      expect(address).toContain("fd00:6::");
      await shows(visit, "#legend", "bound to a pod: 2");
      await visit.page.fill("#query", address);
      await visit.page.press("#query", "Enter");
      await visit.page.click('#results button:has-text("shop/web-1")');
      await shows(visit, "#chosen", "shop/web-1, eth0");
      expect(visit.errors).toEqual([]);
    });
  });

  it("shows names as texts, whatever they are", async () => {
    await world.add("h", { args: podArgs("shop", HOSTILE) });
    await visitPage(url, async (visit) => {
      const { page } = visit;
      const search = async () => {
        await page.fill("#query", "script");
        await page.press("#query", "Enter");
        return page.textContent("#results");
      };
      await expect.poll(search, PATIENCE).toContain(`shop/${HOSTILE}`);
      expect([await page.title(), await page.locator("#results script").count()]).toEqual(["Address map – Berth", 0]);
      await page.click(`#results button`);
      await shows(visit, "#chosen", `shop/${HOSTILE}, eth0`);
      await shows(visit, "#table", `shop/${HOSTILE}`);
      await page.click("text=Which pod had this address?");
      await shows(visit, "#chosen", `: shop/${HOSTILE}`);
      await page.click("text=Why does this pod not start?");
      await shows(visit, "#explanation", "ADD");
      await page.goto(`${url}/#pool=${encodeURIComponent(HOSTILE)}&at=${encodeURIComponent(HOSTILE)}`);
      await shows(visit, "#where", "blue: ");
      expect([await page.title(), visit.errors]).toEqual(["Address map – Berth", []]);
    });
  });

  it("has no barrier that axe-core knows, in light and dark, on a desk and on a phone", async () => {
    await world.add("a", { pod: "shop/web-0" });
    for (const [colorScheme, width] of [
      ["dark", 1280],
      ["light", 360],
    ] as const) {
      await visitPage(
        `${url}/#pool=blue&at=10.6.0.0/24`,
        async (visit) => {
          await shows(visit, "#table", "shop/web-0");
          await visit.page.fill("#query", "web-0");
          await visit.page.press("#query", "Enter");
          await visit.page.click("#results button");
          await shows(visit, "#chosen", "shop/web-0");
          expect(await findBarriers(visit), `${colorScheme}, ${width}`).toEqual([]);
          const wide = await visit.page.evaluate("document.documentElement.scrollWidth");
          expect(wide).toBeLessThanOrEqual(width);
        },
        { colorScheme, width },
      );
    }
  });
});
