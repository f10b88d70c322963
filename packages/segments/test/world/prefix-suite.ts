/** The product's assumptions about a server of record with prefixes: the real Nautobot, and the fake. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { formatPrefix, type Prefix, parsePrefix } from "../../../../host/net/prefix.ts";
import { formatRange } from "../../../../host/net/range.ts";
import type { Mark } from "../../blocks/lease-server.ts";
import { Leases } from "../../blocks/leases.ts";
import { NO_LEASES, type OwnLeases } from "../../blocks/own-leases.ts";
import type { OwnRanges } from "../../blocks/own-ranges.ts";
import { HttpClient, type ServerRequest } from "../../record-server/http-client.ts";
import { PrefixServer, type Product } from "../../record-server/prefix-server.ts";

const { signal } = new AbortController();

export interface SuiteServer extends AsyncDisposable {
  readonly product: Product;
  readonly url: string;
  readonly tokenFile: string;
}

export function prefix(text: string): Prefix {
  const parsed = parsePrefix(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
}

/** One cluster's memory, in place of its ConfigMap. */
export class Memory {
  own: OwnLeases = NO_LEASES;

  get port(): OwnRanges {
    const read = async () => ({ own: this.own, map: {} });
    const write = async (_: string, { own }: { own: OwnLeases }) => {
      this.own = own;
      return { own, map: {} };
    };
    return { read, write } as unknown as OwnRanges;
  }
}

export function suite(title: string, start: () => Promise<SuiteServer>): void {
  describe(title, () => {
    let server: SuiteServer;
    let client: HttpClient;
    const open = (text: string, blockSize = 28) =>
      new PrefixServer({
        ...{ client, product: server.product, space: server.product === "nautobot" ? "Global" : "" },
        source: { addressSpace: "", prefix: prefix(text), blockSize },
      });
    let serial = 0;
    const active = () => (server.product === "nautobot" ? "Active" : "active");
    const call = (request: Omit<ServerRequest, "signal">) => client.request({ ...request, signal });
    const write = async (collection: string, body: object) =>
      (await call({ method: "POST", path: `/api/ipam/${collection}/`, body: { status: active(), ...body } })).json as {
        id: string;
      };
    const mark = (request = randomUUID()): Mark => {
      return { cluster: "11111111-1111-4111-8111-111111111111", name: "east", pool: "lan", request, isAgain: false };
    };
    const texts = async ({ prefixes, parent }: Awaited<ReturnType<typeof newParent>>) =>
      (await prefixes.children(parent, signal)).map((each) => formatPrefix(each.prefix)).sort();

    beforeAll(async () => {
      server = await start();
      client = new HttpClient({ url: server.url, tokenFile: server.tokenFile, userAgent: "test" });
    }, 300_000);
    afterAll(async () => {
      await client?.close();
      await server?.[Symbol.asyncDispose]();
    });
    let made: readonly string[] = [];
    afterEach(async () => {
      for (const path of made) await call({ method: "DELETE", path }).catch(() => {});
      made = [];
    });

    /** Returns a new prefix of this length: `10.77.N.0/27`. */
    async function newParent(length: number) {
      const text = `10.77.${++serial}.0/${length}`;
      const { id } = await write("prefixes", { prefix: text });
      made = [...made, `/api/ipam/prefixes/${id}/`];
      const prefixes = open(text);
      return { prefixes, parent: await prefixes.findParent(signal) };
    }

    it("a prefix that it does not have is an error", async () => {
      await expect(open("10.76.0.0/22").findParent(signal)).rejects.toThrow("has no prefix 10.76.0.0/22");
    });

    it("parts are made until there is no room; each has its mark and a time", async () => {
      const found = await newParent(27);
      const { prefixes, parent } = found;
      const [one, other] = [mark(), mark()];
      expect(await Promise.all([one, other].map((each) => prefixes.ask(parent, { mark: each }, signal)))).toEqual([
        undefined,
        undefined,
      ]);
      expect(await prefixes.ask(parent, { mark: mark() }, signal)).toBe("range");
      const children = await prefixes.children(parent, signal);
      expect(children.map((each) => formatPrefix(each.prefix)).sort()).toEqual([
        `10.77.${serial}.0/28`,
        `10.77.${serial}.16/28`,
      ]);
      expect(children.map((each) => each.mark)).toEqual(expect.arrayContaining([one, other]));
      for (const { created } of children) expect(created).toMatch(/^20\d\d-\d\d-\d\dT/);
      for (const child of children) await prefixes.remove(child, signal);
      for (const child of children) await prefixes.remove(child, signal);
      expect(await texts(found)).toEqual([]);
    });

    it("one that is there is not made again; a part of it is", async () => {
      const { prefixes, parent } = await newParent(24);
      const own = { ...mark(), isAgain: true };
      const block = prefix(`10.77.${serial}.16/28`);
      expect(await prefixes.make(parent, block, { mark: own, mayBeThere: true }, signal)).toBeUndefined();
      if (server.product === "nautobot")
        expect(await prefixes.make(parent, block, { mark: mark(), mayBeThere: true }, signal)).toBe("refused");
      expect(
        await prefixes.make(parent, prefix(`10.77.${serial}.16/29`), { mark: mark(), mayBeThere: false }, signal),
      ).toBeUndefined();
      const [whole] = (await prefixes.children(parent, signal)).filter((each) => each.prefix.length === 28);
      expect(whole?.mark).toEqual(own);
    });

    it("the addresses in a part are those that people have written down", async () => {
      const { prefixes, parent } = await newParent(24);
      const block = prefix(`10.77.${serial}.16/28`);
      await prefixes.make(parent, block, { mark: mark(), mayBeThere: true }, signal);
      const own = mark().cluster;
      for (const last of [18, 19, 40]) {
        const { id } = await write("ip-addresses", {
          address: `10.77.${serial}.${last}/24`,
          description: last === 19 ? `Pod shop/web-0 [berth ${own}]` : "router",
          ...(server.product === "nautobot" && { namespace: "Global" }),
        });
        made = [`/api/ipam/ip-addresses/${id}/`, ...made];
      }
      const found = await prefixes.addresses(parent, { prefix: block, cluster: own }, signal);
      expect(found.map((each) => formatPrefix(each))).toEqual([`10.77.${serial}.18/24`]);
    });

    it("two clusters take blocks, and give one back; prefixes that the server loses are made again, and win", async () => {
      const found = await newParent(27);
      const { prefixes, parent } = found;
      const clusters = ["1", "2"].map((digit) => {
        const memory = new Memory();
        const uid = "11111111-1111-4111-8111-111111111111".replaceAll("1", digit);
        const names = { cluster: uid, name: digit === "1" ? "east" : "west" };
        const options = { server: prefixes, own: memory.port, key: "x", newId: randomUUID, nowMs: () => 0, ...names };
        const blocks = new Leases(options);
        const update = (count: number, giveBack: readonly string[] = []) =>
          blocks.update({ lease: { lan: count }, giveBack }, signal);
        return { memory, update };
      });
      const [east, west] = clusters as [(typeof clusters)[number], (typeof clusters)[number]];
      const [first, second] = [`10.77.${serial}.0/28`, `10.77.${serial}.16/28`];
      expect((await east.update(1)).blocks).toEqual({ [first]: "lan" });
      const view = await west.update(2);
      expect(view).toMatchObject({
        blocks: { [second]: "lan" },
        short: "range",
        others: { [first]: "east" },
        size: 16,
      });
      expect(view.excluded.map(formatRange)).toEqual([]);

      // The server is restored to a time before east's lease, and west gets the block.
      const [lost] = (await prefixes.children(parent, signal)).filter((each) => each.mark?.name === "east");
      if (lost !== undefined) await prefixes.remove(lost, signal);
      expect((await west.update(2)).blocks).toEqual({ [first]: "lan", [second]: "lan" });
      expect(await east.update(1)).toMatchObject({ blocks: {}, disputed: { [first]: "lan" } });
      expect(await west.update(2)).toMatchObject({ blocks: { [second]: "lan" }, disputed: { [first]: "lan" } });
      await west.update(1, [first]);
      expect(await east.update(1)).toMatchObject({ blocks: { [first]: "lan" }, disputed: {} });
      expect(await texts(found)).toEqual([first, second]);
      await east.update(0, [first]);
      expect(await texts(found)).toEqual([second]);
      await west.update(0, [second]);
    });
  });
}
