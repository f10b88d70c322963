/** Our tables of nf_tables on the real kernel: what `nft` reads of what we write, and we of what it writes. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type Conversation, createConversation } from "../../host/kernel/netlink/conversation.ts";
import {
  addToSet,
  deleteTable,
  readTable,
  removeFromSet,
  replaceTable,
} from "../../host/kernel/netlink/nftables/requests.ts";
import { matchInterfaceSet, setMark } from "../../host/kernel/netlink/nftables/statement.ts";
import { type Datagrams, openNetfilterSocket } from "../../host/kernel/netlink/socket.ts";
import type { NftTable } from "../../host/plan/nft-table.ts";
import { ruleset } from "../unit/kernel/ruleset.ts";

const root = join(import.meta.dirname, "../..");
const name = `bkt${process.pid}`;
const recorded = join(root, "test/unit/kernel/record/ruleset.nft");
const nft = (...words: string[]) => execFileSync("ip", ["netns", "exec", name, "nft", ...words]).toString();

let socket: Datagrams;
let conversation: Conversation;

beforeAll(() => {
  execFileSync(join(root, "native/build.sh"), ["addon"], { stdio: "inherit" });
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
  replaceTable(conversation, ruleset);
  expect(canonical(nft("list", "ruleset"))).toEqual(canonical(readFileSync(recorded, "utf8")));
});

it("what we read back is what we wrote, and so is what `nft` wrote", () => {
  replaceTable(conversation, ruleset);
  expect(sorted(readTable(conversation, "berth"))).toEqual(sorted(ruleset));
  nft("flush", "ruleset");
  nft("-f", recorded);
  expect(sorted(readTable(conversation, "berth"))).toEqual(sorted(ruleset));
});

it("replacing again changes nothing, and replaces what others did in our table", () => {
  replaceTable(conversation, ruleset);
  nft("add", "rule", "inet", "berth", "enter", "counter", "drop");
  expect(sorted(readTable(conversation, "berth"))).not.toEqual(sorted(ruleset));
  for (let round = 0; round < 3; round++) replaceTable(conversation, ruleset);
  expect(canonical(nft("list", "ruleset"))).toEqual(canonical(readFileSync(recorded, "utf8")));
});

it("tables of others stay as they are", () => {
  nft("add table inet other; add chain inet other enter; add rule inet other enter counter accept");
  const before = nft("list", "table", "inet", "other");
  replaceTable(conversation, ruleset);
  expect(deleteTable(conversation, "berth")).toBe(true);
  expect(nft("list", "ruleset")).toBe(before);
});

it("a table is there or not", () => {
  expect(readTable(conversation, "berth")).toBeUndefined();
  expect(deleteTable(conversation, "berth")).toBe(false);
  replaceTable(conversation, { name: "berth", sets: [], chains: [] });
  expect(readTable(conversation, "berth")).toEqual({ name: "berth", sets: [], chains: [] });
  expect(deleteTable(conversation, "berth")).toBe(true);
});

it("a batch that fails half way leaves all as it was, and the error names the step", () => {
  replaceTable(conversation, ruleset);
  const [chain] = ruleset.chains;
  const rules = [setMark("meta", 2, 2), matchInterfaceSet("iifname", "absent")];
  const broken = { ...ruleset, chains: chain ? [{ ...chain, rules }] : [] };
  expect(() => replaceTable(conversation, broken)).toThrow(/^Cannot add rule 2 of chain "enter": .*ENOENT/);
  const odd = { ...ruleset, chains: chain ? [{ ...chain, type: "nat" as const, hook: 77 }] : [] };
  expect(() => replaceTable(conversation, odd)).toThrow(/^Cannot add chain "enter": /);
  expect(sorted(readTable(conversation, "berth"))).toEqual(sorted(ruleset));
  replaceTable(conversation, ruleset); // the conversation goes on
});

it("interfaces join and leave a set", () => {
  replaceTable(conversation, ruleset);
  addToSet(conversation, "berth", { name: "ours", interfaces: ["veth2", "veth3"] });
  addToSet(conversation, "berth", { name: "ours", interfaces: ["veth3"] });
  addToSet(conversation, "berth", { name: "ours", interfaces: [] });
  const members = () => [...(readTable(conversation, "berth")?.sets[0]?.interfaces ?? [])].sort();
  expect(members()).toEqual(["veth0a1b2c3d4e5", "veth1", "veth2", "veth3"]);
  expect(removeFromSet(conversation, "berth", "ours", "veth2")).toBe(true);
  expect(removeFromSet(conversation, "berth", "ours", "veth2")).toBe(false);
  expect(members()).toEqual(["veth0a1b2c3d4e5", "veth1", "veth3"]);
  expect(() => addToSet(conversation, "absent", { name: "ours", interfaces: ["x"] })).toThrow(
    /^Cannot add to set "ours": .*ENOENT/,
  );
});

it("a set of a thousand interfaces is written and read", () => {
  const interfaces = Array.from({ length: 1_000 }, (_, index) => `veth${index}`);
  const table = { ...ruleset, sets: [{ name: "ours", interfaces }] };
  replaceTable(conversation, table);
  expect(sorted(readTable(conversation, "berth"))).toEqual(sorted(table));
});

it("rules of others in our table are read as they are", () => {
  replaceTable(conversation, ruleset);
  nft("add", "rule", "inet", "berth", "enter", "ct", "original", "protocol", "6", "counter", "drop");
  const rule = readTable(conversation, "berth")?.chains.find((chain) => chain.name === "enter")?.rules[1];
  expect(rule?.map((expression) => (expression.name === "other" ? expression.word : expression.name))).toEqual(
    expect.arrayContaining(["ct", "cmp", "counter", "immediate"]),
  );
});
