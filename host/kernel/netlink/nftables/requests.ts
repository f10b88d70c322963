/**
 * Creates, reads and deletes Berth's own tables of nf_tables, each in one step. Tables of others are only read: every
 * request that changes state names its table. The conversation must be with netfilter (openNetfilterSocket).
 */
import type { Expression, NftTable } from "../../../plan/nft-table.ts";
import { ENOENT } from "../../errno.ts";
import { type Attribute, attribute, encodeString, encodeUint32, readValue } from "../attribute.ts";
import { NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL } from "../constants.ts";
import { type Conversation, Refusal, type Request } from "../conversation.ts";
import { unlessRefused } from "../error.ts";
import {
  BATCH_RESOURCE,
  NF_DROP,
  NF_INET_FORWARD,
  NFNL_MSG_BATCH_BEGIN,
  NFNL_MSG_BATCH_END,
  NFPROTO_INET,
  NFPROTO_IPV4,
  NFPROTO_IPV6,
  NFPROTO_UNSPEC,
  NFT_MSG_DELTABLE,
  NFT_MSG_GETCHAIN,
  NFT_MSG_GETGEN,
  NFT_MSG_GETRULE,
  NFT_MSG_GETTABLE,
  NFT_MSG_NEWCHAIN,
  NFT_MSG_NEWGEN,
  NFT_MSG_NEWRULE,
  NFT_MSG_NEWTABLE,
  NFT_TABLE_F_DORMANT,
  NFTA_CHAIN_POLICY,
  NFTA_CHAIN_TABLE,
  NFTA_GEN_ID,
  NFTA_RULE_TABLE,
  NFTA_TABLE_FLAGS,
  NFTA_TABLE_NAME,
} from "./constants.ts";
import { decodeName, decodeNft, decodeNumber, encodeNft, type NftMessage } from "./message.ts";
import { chainOf, encodeChain, encodeRuleOf, ruleOf } from "./table.ts";

const text = (type: number, value: string) => attribute(type, encodeString(value));

function request(what: string, type: number, own: readonly Attribute[], flags = 0, family = NFPROTO_INET): Request {
  return { operation: what, type, flags, payload: encodeNft({ family, resource: 0, attributes: own }) };
}

/** Applies all of the requests, or none. */
function commit(conversation: Conversation, operation: string, requests: readonly Request[]): void {
  const payload = encodeNft({ family: 0, resource: BATCH_RESOURCE, attributes: [] });
  const begin = { operation, type: NFNL_MSG_BATCH_BEGIN, payload };
  conversation.batch([begin, ...requests, { operation, type: NFNL_MSG_BATCH_END, payload }]);
}

function newTable(name: string, flags = 0): Request {
  const attributes = [text(NFTA_TABLE_NAME, name), attribute(NFTA_TABLE_FLAGS, encodeUint32(0))];
  return request(`add table "${name}"`, NFT_MSG_NEWTABLE, attributes, NLM_F_CREATE | flags);
}

function contentsOf({ name, chains }: NftTable): Request[] {
  const chainRequests = chains.map((chain) =>
    request(`add chain "${chain.name}"`, NFT_MSG_NEWCHAIN, encodeChain(name, chain), NLM_F_CREATE),
  );
  const ruleRequests = chains.flatMap((chain) =>
    chain.rules.map((rule, index) => {
      const operation = `add rule ${index + 1} of chain "${chain.name}"`;
      const flags = NLM_F_CREATE | NLM_F_APPEND;
      return request(operation, NFT_MSG_NEWRULE, encodeRuleOf(name, chain.name, rule), flags);
    }),
  );
  return [...chainRequests, ...ruleRequests];
}

/** The requests that create a table, by the table: each pod's table of the reply path is the same object. */
const creations = new WeakMap<NftTable, readonly Request[]>();

/** Throws NetlinkError with EEXIST if there already is a table of that name, unless it is to be replaced. */
export function createTable(conversation: Conversation, table: NftTable, isReplaced = false): void {
  const { name } = table;
  const requests = creations.getOrInsertComputed(table, () => [newTable(name, NLM_F_EXCL), ...contentsOf(table)]);
  const before = isReplaced ? [newTable(name), removeTable(name)] : [];
  commit(conversation, `add table "${name}"`, [...before, ...requests]);
}

/** Returns whether the table existed. */
export function deleteTable(conversation: Conversation, name: string): boolean {
  const removal = [removeTable(name)];
  return unlessRefused([ENOENT], () => commit(conversation, `delete table "${name}"`, removal) ?? true) ?? false;
}

function removeTable(name: string): Request {
  return request(`delete table "${name}"`, NFT_MSG_DELTABLE, [text(NFTA_TABLE_NAME, name)]);
}

/**
 * Returns undefined if there is no such table. A table made by {@link createTable} is read back equal. A chain that
 * drops by default, or whose table is dormant, is read without its rules: they do not work as they were made.
 */
export function readTable(conversation: Conversation, name: string): NftTable | undefined {
  const operation = `get table "${name}"`;
  const question = request(operation, NFT_MSG_GETTABLE, [text(NFTA_TABLE_NAME, name)]);
  const [found] = conversation.pipeline([question]);
  if (found instanceof Refusal) {
    if (found.errno === ENOENT) return undefined;
    throw found.toError();
  }
  const [table] = (found ?? []).map((message) => decodeNft(message, NFT_MSG_NEWTABLE));
  const flags = (table && readValue(table.attributes, NFTA_TABLE_FLAGS, decodeNumber)) ?? 0;
  const isDormant = (flags & NFT_TABLE_F_DORMANT) !== 0;
  const ofTable = [text(NFTA_RULE_TABLE, name)];
  const rules = conversation
    .dump(request(`list rules of table "${name}"`, NFT_MSG_GETRULE, ofTable))
    .map((message) => ruleOf(decodeNft(message, NFT_MSG_NEWRULE)));
  const chains = conversation
    .dump(request("list chains", NFT_MSG_GETCHAIN, []))
    .map((message) => decodeNft(message, NFT_MSG_NEWCHAIN))
    .filter(({ attributes }) => readValue(attributes, NFTA_CHAIN_TABLE, decodeName) === name)
    .flatMap((message) => {
      const chain = chainOf(message);
      const own = isDormant || isClosed(message) ? [] : rules.filter((one) => one.chain === chain?.name);
      return chain === undefined ? [] : [{ ...chain, rules: own.map(({ rule }) => rule) }];
    });
  return { name, chains };
}

/** Whether the chain drops by default. */
function isClosed({ attributes }: NftMessage): boolean {
  return readValue(attributes, NFTA_CHAIN_POLICY, decodeNumber) === NF_DROP;
}

/** Families of tables that IP packets pass, in the words of `nft`. */
const WORDS: Record<number, string> = { [NFPROTO_INET]: "inet", [NFPROTO_IPV4]: "ip", [NFPROTO_IPV6]: "ip6" };

/**
 * Returns the chains that by default drop forwarded packets, as `ip filter FORWARD`, and whose table has no rule about
 * links with names that start with `linkStart`.
 */
export function listClosedChains(conversation: Conversation, linkStart: string): string[] {
  const list = (type: number, attributes: readonly Attribute[], family: number) =>
    conversation.dump(request("list chains and rules", type, attributes, 0, family));
  return list(NFT_MSG_GETCHAIN, [], NFPROTO_UNSPEC).flatMap((message) => {
    const chain = decodeNft(message, NFT_MSG_NEWCHAIN);
    const family = WORDS[chain.family];
    const { name, hook } = chainOf(chain) ?? {};
    if (family === undefined || hook !== NF_INET_FORWARD || !isClosed(chain)) return [];
    const table = readValue(chain.attributes, NFTA_CHAIN_TABLE, decodeName) ?? "";
    const rules = list(NFT_MSG_GETRULE, [text(NFTA_RULE_TABLE, table)], chain.family);
    const isAbout = (each: Expression): boolean => each.name === "cmp" && decodeName(each.value).startsWith(linkStart);
    const isOpen = rules.some((rule) => ruleOf(decodeNft(rule, NFT_MSG_NEWRULE)).rule.some(isAbout));
    return isOpen ? [] : [`${family} ${table} ${name}`];
  });
}

/** Returns the generation of the namespace's ruleset, which increases with every change of it. */
function readGeneration(conversation: Conversation): number | undefined {
  const [answer] = conversation.request(request("get the generation", NFT_MSG_GETGEN, []));
  return answer && readValue(decodeNft(answer, NFT_MSG_NEWGEN).attributes, NFTA_GEN_ID, decodeNumber);
}

/** The last read state of a table. It is read again only after the ruleset of its namespace has changed. */
export class CachedTable {
  readonly #name: string;
  #read: { readonly generation: number; readonly table: NftTable | undefined } | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  /** As {@link readTable}. */
  read(conversation: Conversation): NftTable | undefined {
    const generation = readGeneration(conversation);
    if (generation !== undefined && this.#read?.generation === generation) return this.#read.table;
    const found = readTable(conversation, this.#name);
    const isStable = generation !== undefined && readGeneration(conversation) === generation;
    this.#read = isStable ? { generation, table: structuredClone(found) } : undefined;
    return found;
  }
}
