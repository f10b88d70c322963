/** The product's assumptions about a server of record with single addresses: the real Nautobot, and the fake. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpClient } from "../../record-server/http-client.ts";
import { NAUTOBOT } from "../../record-server/nautobot-addresses.ts";
import { NETBOX } from "../../record-server/netbox-addresses.ts";
import { markOf, type PodAddress, type ServerAddress } from "../../record-server/pod-address.ts";
import type { Product } from "../../record-server/prefix-server.ts";
import { RecordsRefused, RestAddresses } from "../../record-server/rest-addresses.ts";

const { signal } = new AbortController();

export const CLUSTER = "11111111-1111-4111-8111-111111111111";
const OTHER = "22222222-2222-4222-8222-222222222222";

/** A server with the tag "berth", the prefixes 10.6.0.0/16 and fd00:6::/64, and other writers. */
export interface AddressesUnderTest extends AsyncDisposable {
  readonly product: Product;
  readonly url: string;
  readonly tokenFile: string;
  /** As an administrator. Throws unless it is answered with 2xx. */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
}

/** Namespace or VRF of the suite. */
export const spaceOf = (product: Product): string => (product === "nautobot" ? "Global" : "");

interface OpenOptions {
  readonly cluster?: string;
  readonly tag?: string;
  readonly spaces?: readonly string[];
}

export function openAddresses(
  { product, url, tokenFile }: Pick<AddressesUnderTest, "product" | "url" | "tokenFile">,
  { cluster = CLUSTER, tag = "berth", spaces = [spaceOf(product)] }: OpenOptions = {},
): RestAddresses & { end(): Promise<void> } {
  const client = new HttpClient({ url, tokenFile, userAgent: "test" });
  const dialect = product === "nautobot" ? NAUTOBOT : NETBOX;
  const server = new RestAddresses({ client, dialect, cluster, tag, spaces });
  return Object.assign(server, { end: () => client.close() });
}

export function addressSuite(title: string, start: () => Promise<AddressesUnderTest>): void {
  describe(title, () => {
    let under: AddressesUnderTest;
    const opened: { end(): Promise<void> }[] = [];
    beforeAll(async () => {
      under = await start();
    }, 300_000);
    afterAll(async () => {
      for (const each of opened) await each.end();
      await under?.[Symbol.asyncDispose]();
    });

    async function open(options: OpenOptions = {}): Promise<RestAddresses> {
      const server = openAddresses(under, options);
      opened.push(server);
      await server.prepare(signal);
      return server;
    }

    const wanted = (ip: string, cluster = CLUSTER): PodAddress => ({
      ...{ space: spaceOf(under.product), ip, prefixLength: ip.includes(":") ? 64 : 16 },
      ...{ dnsName: "web-0.shop", description: `Pod shop/web-0 eth0, cluster east ${markOf(cluster)}` },
    });

    async function ownOf(server: RestAddresses): Promise<ServerAddress[]> {
      const found: ServerAddress[] = [];
      for await (const page of server.listOwn(signal)) found.push(...page);
      return found;
    }

    /** An entry of others, without Berth's tag unless `more` has it. */
    const writeForeign = (address: string, more: object = {}) =>
      under.call("POST", "/api/ipam/ip-addresses/", {
        ...{ address, description: "printer" },
        ...(under.product === "nautobot" ? { namespace: "Global", status: "Active" } : { status: "active" }),
        ...more,
      }) as Promise<{ readonly id: string | number }>;

    it("a missing tag, namespace or VRF is named", async () => {
      await expect(open({ tag: "nope" })).rejects.toThrow('has no tag "nope"; create it');
      await expect(open({ spaces: ["nope"] })).rejects.toThrow(/has no (namespace|VRF) "nope"; create it/);
    });

    it("created entries are listed as they were wanted, and nothing of others", async () => {
      const [server, other] = [await open(), await open({ cluster: OTHER })];
      const entries = [wanted("10.6.1.1"), wanted("10.6.1.2"), wanted("fd00:6::1:1")];
      const made = await server.create(entries, signal);
      await other.create([wanted("10.6.1.3", OTHER)], signal);
      await writeForeign("10.6.1.4/16");
      await writeForeign("10.6.1.5/16", { description: `without the tag ${markOf(CLUSTER)}` });
      expect(made).toMatchObject(entries);
      const listed = (await ownOf(server)).sort((a, b) => a.ip.localeCompare(b.ip));
      expect(listed.map(({ id, ...rest }) => rest)).toEqual(entries.map((entry) => ({ ...entry, isOwn: true })));
      const places = ["10.6.1.1", "10.6.1.3", "10.6.1.4", "10.6.1.5", "10.6.1.9", "fd00:6::1:1"];
      const found = await server.findAt(
        places.map((ip) => wanted(ip)),
        signal,
      );
      expect(Object.fromEntries(found.map(({ ip, isOwn }) => [ip, isOwn]))).toEqual({
        ...{ "10.6.1.1": true, "10.6.1.3": false, "10.6.1.4": false, "10.6.1.5": false, "fd00:6::1:1": true },
      });
    });

    it("a change leaves the additions of others", async () => {
      const server = await open();
      const [entry] = await server.create([wanted("10.6.2.1")], signal);
      if (entry === undefined) throw new Error("Nothing was created");
      const path = `/api/ipam/ip-addresses/${entry.id}/`;
      const status = under.product === "nautobot" ? { name: "Reserved" } : "reserved";
      const before = (await under.call("PATCH", path, { status })) as { readonly status: object };
      await server.update([{ ...entry, dnsName: "web-1.shop", prefixLength: 24 }], signal);
      const after = (await under.call("GET", path)) as { readonly status: object; readonly tags: readonly object[] };
      expect(after).toMatchObject({ dns_name: "web-1.shop", address: "10.6.2.1/24", status: before.status });
      expect(after.tags).toHaveLength(1);
    });

    it("entries that are gone may be changed and deleted again", async () => {
      const server = await open();
      const made = await server.create([wanted("10.6.3.1"), wanted("10.6.3.2")], signal);
      const ids = made.map(({ id }) => id);
      await server.remove(ids.slice(0, 1), signal);
      await server.remove(ids, signal);
      expect(await server.findAt([wanted("10.6.3.1"), wanted("10.6.3.2")], signal)).toEqual([]);
    });

    it("a refused entry keeps the others of its call from being created, and is named", async () => {
      const server = await open();
      const bad = { ...wanted("10.6.4.2"), dnsName: "not a name" };
      const refused = await server.create([wanted("10.6.4.1"), bad], signal).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(RecordsRefused);
      expect((refused as RecordsRefused).reasons).toEqual([
        undefined,
        expect.stringContaining("dns_name: Only alphan"),
      ]);
      expect(await server.findAt([wanted("10.6.4.1")], signal)).toEqual([]);
      const [entry] = await server.create([wanted("10.6.4.1")], signal);
      if (entry === undefined) throw new Error("Nothing was created");
      const change = { ...entry, dnsName: "not a name" };
      await expect(server.update([change], signal)).rejects.toThrow(RecordsRefused);
    });

    it("an address without a prefix around it is refused by Nautobot", async () => {
      const server = await open();
      const call = server.create([wanted("10.99.0.1")], signal);
      if (under.product === "netbox") await call;
      else
        await expect(call).rejects.toMatchObject({ reasons: [expect.stringContaining("No suitable parent Prefix")] });
    });
  });
}
