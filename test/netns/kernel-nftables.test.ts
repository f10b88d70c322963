/** Our tables of nf_tables on the real kernel: `nft` reads ours, and we read those of `nft`. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type Conversation, createConversation } from "../../host/kernel/netlink/conversation.ts";
import { createTable, deleteTable, readTable } from "../../host/kernel/netlink/nftables/requests.ts";
import { setMark } from "../../host/kernel/netlink/nftables/statement.ts";
import { type Datagrams, openNetfilterSocket } from "../../host/kernel/netlink/socket.ts";
import type { NftRule } from "../../host/plan/nft-table.ts";
import { ruleset } from "../unit/kernel/ruleset.ts";

const name = `bkt${process.pid}`;
const recorded = join(import.meta.dirname, "../unit/kernel/ruleset.nft");
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

it("`nft` reads our table as it is meant", () => {
  createTable(conversation, ruleset);
  expect(nft("list", "ruleset")).toEqual(readFileSync(recorded, "utf8"));
});

it("we read back our own table, and that of `nft`", () => {
  createTable(conversation, ruleset);
  expect(readTable(conversation, "berth")).toEqual(ruleset);
  nft("flush", "ruleset");
  nft("-f", recorded);
  expect(readTable(conversation, "berth")).toEqual(ruleset);
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
  createTable(conversation, { name: "berth", chains: [] });
  expect(readTable(conversation, "berth")).toEqual({ name: "berth", chains: [] });
  expect(deleteTable(conversation, "berth")).toBe(true);
});

it("a batch that fails half way leaves all as it was, and the error names the step", () => {
  const [chain] = ruleset.chains;
  const rules: NftRule[] = [setMark("meta", 2, 2), [{ name: "other", word: "absent", attributes: [] }]];
  const broken = { ...ruleset, chains: chain ? [{ ...chain, rules }] : [] };
  expect(() => createTable(conversation, broken)).toThrow(/^Cannot add rule 2 of chain "enter": .*ENOENT/);
  const odd = { ...ruleset, chains: chain ? [{ ...chain, type: "nat" as const, hook: 77 }] : [] };
  expect(() => createTable(conversation, odd)).toThrow(/^Cannot add chain "enter": /);
  expect(readTable(conversation, "berth")).toBeUndefined();
  createTable(conversation, ruleset); // the conversation goes on
  expect(() => createTable(conversation, ruleset)).toThrow(/^Cannot add table "berth": .*EEXIST/);
  expect(readTable(conversation, "berth")).toEqual(ruleset);
});

it("rules of others in our table are read as they are, with their sets", () => {
  createTable(conversation, ruleset);
  nft("add set inet berth theirs { type ifname; }; add rule inet berth answer oifname @theirs drop");
  nft("add", "rule", "inet", "berth", "enter", "ct", "original", "protocol", "6", "counter", "drop");
  expect(
    readTable(conversation, "berth")?.chains.find((chain) => chain.name === "answer")?.rules[1]?.[1],
  ).toMatchObject({ name: "other", word: "lookup" });
  const rule = readTable(conversation, "berth")?.chains.find((chain) => chain.name === "enter")?.rules[1];
  expect(rule?.map((expression) => (expression.name === "other" ? expression.word : expression.name))).toEqual(
    expect.arrayContaining(["ct", "cmp", "counter", "drop"]),
  );
});
