/** Our tables of nf_tables on the real kernel: what `nft` reads of what we write, and we of what it writes. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type Conversation, createConversation } from "../../host/kernel/netlink/conversation.ts";
import { NFT_META_IIFNAME } from "../../host/kernel/netlink/nftables/constants.ts";
import { createTable, deleteTable, readTable } from "../../host/kernel/netlink/nftables/requests.ts";
import { setMark } from "../../host/kernel/netlink/nftables/statement.ts";
import { type Datagrams, openNetfilterSocket } from "../../host/kernel/netlink/socket.ts";
import type { NftTable } from "../../host/plan/nft-table.ts";
import { matchSet, ruleset } from "../unit/kernel/ruleset.ts";

const root = join(import.meta.dirname, "../..");
const name = `bkt${process.pid}`;
const recorded = join(root, "test/unit/kernel/record/ruleset.nft");
const nft = (...words: string[]) => execFileSync("ip", ["netns", "exec", name, "nft", ...words]).toString();

let socket: Datagrams;
let conversation: Conversation;

beforeAll(() => {
  execFileSync("ip", ["netns", "add", name]);
  socket = openNetfilterSocket(`/run/netns/${name}`);
  conversation = createConversation(socket);
});
beforeEach(() => {
  nft("flush", "ruleset");
});
afterAll(() => {
  socket[Symbol.dispose]();
  execFileSync("ip", ["netns", "del", name]);
});

/** Without the order of elements, which is that of a hash. */
function canonical(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.replace(/elements = |[{},]/g, "").trim())
    .filter((line) => line !== "")
    .map((line) => (/^"\w+"( "\w+")?$/.test(line) ? line.split(" ").sort().join("\n") : line))
    .sort();
}

function sorted(table: NftTable | undefined) {
  const sets = table?.sets.map((set) => ({ ...set, interfaces: [...set.interfaces].sort() }));
  return { ...table, sets };
}

it("`nft` reads what we meant", () => {
  createTable(conversation, ruleset);
  expect(canonical(nft("list", "ruleset"))).toEqual(canonical(readFileSync(recorded, "utf8")));
});

it("what we read back is what we wrote, and so is what `nft` wrote", () => {
  createTable(conversation, ruleset);
  expect(sorted(readTable(conversation, "berth"))).toEqual(sorted(ruleset));
  nft("flush", "ruleset");
  nft("-f", recorded);
  expect(sorted(readTable(conversation, "berth"))).toEqual(sorted(ruleset));
});

it("tables of others stay as they are", () => {
  nft("add table inet other; add chain inet other enter; add rule inet other enter counter accept");
  const before = nft("list", "table", "inet", "other");
  createTable(conversation, ruleset);
  expect(deleteTable(conversation, "berth")).toBe(true);
  expect(nft("list", "ruleset")).toBe(before);
});

it("a table is there or not", () => {
  expect(readTable(conversation, "berth")).toBeUndefined();
  expect(deleteTable(conversation, "berth")).toBe(false);
  createTable(conversation, { name: "berth", sets: [], chains: [] });
  expect(readTable(conversation, "berth")).toEqual({ name: "berth", sets: [], chains: [] });
  expect(deleteTable(conversation, "berth")).toBe(true);
});

it("a batch that fails half way leaves all as it was, and the error names the step", () => {
  const [chain] = ruleset.chains;
  const rules = [setMark("meta", 2, 2), matchSet(NFT_META_IIFNAME, "absent")];
  const broken = { ...ruleset, chains: chain ? [{ ...chain, rules }] : [] };
  expect(() => createTable(conversation, broken)).toThrow(/^Cannot add rule 2 of chain "enter": .*ENOENT/);
  const odd = { ...ruleset, chains: chain ? [{ ...chain, type: "nat" as const, hook: 77 }] : [] };
  expect(() => createTable(conversation, odd)).toThrow(/^Cannot add chain "enter": /);
  expect(readTable(conversation, "berth")).toBeUndefined();
  createTable(conversation, ruleset); // the conversation goes on
  expect(() => createTable(conversation, ruleset)).toThrow(/^Cannot add table "berth": .*EEXIST/);
  expect(sorted(readTable(conversation, "berth"))).toEqual(sorted(ruleset));
});

it("a set of a thousand interfaces is written and read", () => {
  const interfaces = Array.from({ length: 1_000 }, (_, index) => `veth${index}`);
  const table = { ...ruleset, sets: [{ name: "ours", interfaces }] };
  createTable(conversation, table);
  expect(sorted(readTable(conversation, "berth"))).toEqual(sorted(table));
});

it("rules of others in our table are read as they are", () => {
  createTable(conversation, ruleset);
  nft("add", "rule", "inet", "berth", "enter", "ct", "original", "protocol", "6", "counter", "drop");
  const rule = readTable(conversation, "berth")?.chains.find((chain) => chain.name === "enter")?.rules[1];
  expect(rule?.map((expression) => (expression.name === "other" ? expression.word : expression.name))).toEqual(
    expect.arrayContaining(["ct", "cmp", "counter", "drop"]),
  );
});
