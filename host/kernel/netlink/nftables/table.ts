import type { Expression, NftChain, NftRule } from "../../../plan/nft-table.ts";
import {
  type Attribute,
  attribute,
  decodeAttributes,
  decodeString,
  encodeString,
  findValue,
  readValue,
} from "../attribute.ts";
import { malformed } from "../error.ts";
import {
  NF_DROP,
  NFT_REG_DECISION,
  NFTA_CHAIN_HOOK,
  NFTA_CHAIN_NAME,
  NFTA_CHAIN_TABLE,
  NFTA_CHAIN_TYPE,
  NFTA_DATA_DECISION,
  NFTA_DATA_VALUE,
  NFTA_EXPR_DATA,
  NFTA_EXPR_NAME,
  NFTA_HOOK_HOOKNUM,
  NFTA_HOOK_PRIORITY,
  NFTA_LIST_ELEM,
  NFTA_RULE_CHAIN,
  NFTA_RULE_EXPRESSIONS,
  NFTA_RULE_TABLE,
} from "./constants.ts";
import { decodeName, decodeNumber, type NftMessage, nested, numberAttribute } from "./message.ts";

const text = (type: number, value: string) => attribute(type, encodeString(value));

export function encodeChain(table: string, { name, type, hook, priority }: NftChain): Attribute[] {
  const place = [numberAttribute(NFTA_HOOK_HOOKNUM, hook), numberAttribute(NFTA_HOOK_PRIORITY, priority)];
  const names = [text(NFTA_CHAIN_TABLE, table), text(NFTA_CHAIN_NAME, name)];
  return [...names, nested(NFTA_CHAIN_HOOK, place), text(NFTA_CHAIN_TYPE, type)];
}

/** Returns undefined for chains without a hook, and for chains of other types. Rules come in separate messages. */
export function chainOf({ attributes }: NftMessage): NftChain | undefined {
  const place = readValue(attributes, NFTA_CHAIN_HOOK, decodeAttributes) ?? [];
  const hook = readValue(place, NFTA_HOOK_HOOKNUM, decodeNumber);
  const priority = readValue(place, NFTA_HOOK_PRIORITY, decodeNumber);
  const type = readValue(attributes, NFTA_CHAIN_TYPE, decodeName);
  const name = readValue(attributes, NFTA_CHAIN_NAME, decodeName);
  if (hook === undefined || priority === undefined || name === undefined) return undefined;
  if (type !== "filter" && type !== "nat" && type !== "route") return undefined;
  return { name, type, hook, priority: priority | 0, rules: [] };
}

export function encodeRuleOf(table: string, chain: string, rule: NftRule): Attribute[] {
  const expressions = nested(NFTA_RULE_EXPRESSIONS, rule.map(encodeExpression));
  return [text(NFTA_RULE_TABLE, table), text(NFTA_RULE_CHAIN, chain), expressions];
}

export function ruleOf({ attributes }: NftMessage): { chain: string; rule: NftRule } {
  const list = readValue(attributes, NFTA_RULE_EXPRESSIONS, decodeAttributes) ?? [];
  return { chain: readValue(attributes, NFTA_RULE_CHAIN, decodeName) ?? "", rule: list.map(decodeExpression) };
}

/** NFTA_META_* and NFTA_CT_*, which differ in numbers. */
const KEYED = { meta: { target: 1, key: 2, source: 3 }, ct: { target: 1, key: 2, source: 4 } } as const;

const data = (type: number, value: Uint8Array) => nested(type, [attribute(NFTA_DATA_VALUE, value)]);

function encodeBody(expression: Exclude<Expression, { name: "other" }>): Attribute[] {
  switch (expression.name) {
    case "meta":
    case "ct": {
      const { target, key, source } = KEYED[expression.name];
      const { register, sets } = expression;
      return [numberAttribute(key, expression.key), numberAttribute(sets ? source : target, register)];
    }
    case "cmp": {
      const { register, operation, value } = expression;
      return [numberAttribute(1, register), numberAttribute(2, operation), data(3, value)];
    }
    case "bitwise": {
      const { source, destination, mask, xor } = expression;
      const registers = [numberAttribute(1, source), numberAttribute(2, destination)];
      return [...registers, numberAttribute(3, mask.length), data(4, mask), data(5, xor)];
    }
    case "masq":
      return [];
    case "drop": {
      const decision = nested(NFTA_DATA_DECISION, [numberAttribute(1, NF_DROP)]);
      return [numberAttribute(1, NFT_REG_DECISION), nested(2, [decision])];
    }
  }
}

/** The kernel's words for expressions that have another name here. */
const WORDS: Readonly<Record<string, string>> = { drop: "immediate" };

export function encodeExpression(expression: Expression): Attribute {
  const word = expression.name === "other" ? expression.word : (WORDS[expression.name] ?? expression.name);
  const body = expression.name === "other" ? expression.attributes : encodeBody(expression);
  return nested(NFTA_LIST_ELEM, [attribute(NFTA_EXPR_NAME, encodeString(word)), nested(NFTA_EXPR_DATA, body)]);
}

function decodeBody(word: string, attributes: readonly Attribute[]): Expression | undefined {
  const number = (type: number) => readValue(attributes, type, decodeNumber);
  const value = (type: number) =>
    readValue(attributes, type, (list) => findValue(decodeAttributes(list), NFTA_DATA_VALUE)?.slice());
  switch (word) {
    case "meta":
    case "ct": {
      const numbers = KEYED[word];
      const [key, target, source] = [number(numbers.key), number(numbers.target), number(numbers.source)];
      const register = target ?? source;
      if (key === undefined || register === undefined || (word === "ct" && number(3) !== undefined)) return undefined;
      return { name: word, key, register, sets: target === undefined };
    }
    case "cmp": {
      const [register, operation, compared] = [number(1), number(2), value(3)];
      if (register === undefined || operation === undefined || compared === undefined) return undefined;
      return { name: word, register, operation, value: compared };
    }
    case "bitwise": {
      const [source, destination, mask, xor] = [number(1), number(2), value(4), value(5)];
      if (source === undefined || destination === undefined || mask === undefined || xor === undefined)
        return undefined;
      return { name: word, source, destination, mask, xor };
    }
    case "masq":
      return attributes.length === 0 ? { name: word } : undefined;
    case "immediate": {
      const decision = readValue(attributes, 2, (list) => findValue(decodeAttributes(list), NFTA_DATA_DECISION));
      const code = decision && readValue(decodeAttributes(decision), 1, decodeNumber);
      return number(1) === NFT_REG_DECISION && code === NF_DROP ? { name: "drop" } : undefined;
    }
    default:
      return undefined;
  }
}

/** Decodes an element of a rule's list. A form of expression that Berth does not write becomes `other`. */
export function decodeExpression({ value }: Attribute): Expression {
  const list = decodeAttributes(value);
  const word = readValue(list, NFTA_EXPR_NAME, decodeString);
  if (word === undefined) throw malformed("expression", 0, "no name", "NFTA_EXPR_NAME");
  const attributes = decodeAttributes(findValue(list, NFTA_EXPR_DATA) ?? new Uint8Array());
  return decodeBody(word, attributes) ?? { name: "other", word, attributes };
}
