/**
 * A real Nautobot, with the rights that the documents ask for: the suites that its fake passes, and the picture of the
 * documents, of a prefix with pods in it.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "../../../../scripts/setup/paths.mjs";
import { closeBrowser, visitPage } from "../../../../test/lab/browser.ts";
import { until } from "../../../../test/lab/waiting.ts";
import { temporaryDirectory } from "../../../../test/world/temporary-directory.ts";
import { type Nautobot, startNautobot } from "../lab/nautobot.ts";
import { type AddressesUnderTest, addressSuite, openAddresses } from "../world/address-suite.ts";
import { suite as prefixSuite } from "../world/prefix-suite.ts";
import { RecordingCluster } from "../world/recording-cluster.ts";

const MADE = join(root, "dist", "screenshots");
const PICTURES = process.env.SCREENSHOTS === undefined ? MADE : join(root, process.env.SCREENSHOTS);

let nautobot: Nautobot;
const directory = temporaryDirectory("berth-records-");
let under: AddressesUnderTest;

beforeAll(async () => {
  nautobot = await startNautobot();
  const tokenFile = join(directory, "token");
  writeFileSync(tokenFile, nautobot.tokens.berth);
  const { url, call } = nautobot;
  const types = ["ipam.ipaddress", "ipam.prefix"];
  await call("POST", "/api/extras/tags/", { name: "berth", color: "2196f3", content_types: types });
  for (const prefix of ["10.6.0.0/16", "fd00:6::/64", "10.20.0.0/16"])
    await call("POST", "/api/ipam/prefixes/", { prefix, status: "Active", description: "Servers of hall 3" });
  under = { product: "nautobot", url, tokenFile, call, [Symbol.asyncDispose]: async () => {} };
}, 600_000);
afterAll(async () => {
  await nautobot?.[Symbol.asyncDispose]();
});

addressSuite("addresses of the real Nautobot", async () => under);
prefixSuite("Nautobot", async () => under);

async function record(): Promise<RecordingCluster & { end(): Promise<void> }> {
  const cluster = new RecordingCluster();
  let close = async () => {};
  await cluster.start({
    open: (uid) => {
      const server = openAddresses(under, { cluster: uid });
      close = () => server.end();
      return server;
    },
    spaces: new Map([["", "Global"]]),
    domain: "pods.east.example.com",
    intervalMs: 1_000,
  });
  const end = async () => {
    await cluster[Symbol.asyncDispose]();
    await close();
  };
  return Object.assign(cluster, { end });
}

it("a prefix in Nautobot shows the pods that have addresses in it", async () => {
  const foreign = { address: "10.20.7.33/16", status: "Active", namespace: "Global", description: "Printer, hall 3" };
  await nautobot.call("POST", "/api/ipam/ip-addresses/", foreign);
  const cluster = await record();
  const names = ["web-6d5f8b-x2kqp", "web-6d5f8b-9hjvw", "cart-0", "cart-1", "search-77c9-4tznm", "mail-0"];
  for (const [at, name] of names.entries()) cluster.give(`10.20.7.${28 + at}`, name);
  try {
    await until("recorded", () => cluster.measured?.entries.in_sync === names.length - 1, 120_000);
    const [problem] = cluster.problems;
    expect(problem).toMatch(/^Address 10\.20\.7\.33 is not recorded: .* \(Printer, hall 3\)$/);
    const { results } = await nautobot.call<{ results: { id: string }[] }>(
      "GET",
      "/api/ipam/prefixes/?prefix=10.20.0.0/16",
    );
    const place = `/ipam/prefixes/${results[0]?.id}/ip-addresses/`;
    mkdirSync(MADE, { recursive: true });
    await visitPage(
      `${nautobot.url}/login/?next=${place}`,
      async ({ page }) => {
        await page.fill("#id_username", nautobot.login.user);
        await page.fill("#id_password", nautobot.login.password);
        await page.press("#id_password", "Enter");
        await page.waitForURL(`**${place}`);
        // Without the greeting.
        await page.goto(`${nautobot.url}${place}`);
        await page.waitForSelector("text=cart-1.shop.pods.east.example.com");
        expect(await page.textContent("body")).toContain("Pod shop/cart-1 eth0, cluster east");
        await page.screenshot({ path: join(PICTURES, "records-nautobot.png") });
      },
      { width: 1_900, height: 900 },
    );
  } finally {
    await closeBrowser();
    await cluster.end();
  }
});
