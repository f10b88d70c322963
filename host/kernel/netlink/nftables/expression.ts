/**
 * Expressions: the steps of a rule, on registers. Those that Berth writes are decoded; all others keep their attributes.
 *
 *      { NFTA_EXPR_NAME "cmp", NFTA_EXPR_DATA { NFTA_CMP_SREG 1, NFTA_CMP_OP 0, NFTA_CMP_DATA { NFTA_DATA_VALUE "veth0" } } }
 *
 * statement.ts composes them.
 */
import type { Expression } from "../../../plan/nft-table.ts";
import {
  type Attribute,
  attribute,
  decodeAttributes,
  decodeString,
  encodeString,
  findValue,
  present,
  readValue,
} from "../attribute.ts";
import { malformed } from "../error.ts";
import { NFTA_DATA_VALUE, NFTA_EXPR_DATA, NFTA_EXPR_NAME, NFTA_LIST_ELEM } from "./constants.ts";
import { decodeNumber, nested, numberAttribute } from "./message.ts";

/** NFTA_META_* and NFTA_CT_*: where the numbers differ. */
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
    case "lookup": {
      const { register, set, flags } = expression;
      const names = [numberAttribute(2, register), attribute(1, encodeString(set))];
      return present([...names, flags === 0 ? undefined : numberAttribute(5, flags)]);
    }
    case "masq":
      return [];
  }
}

export function encodeExpression(expression: Expression): Attribute {
  const word = expression.name === "other" ? expression.word : expression.name;
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
    case "lookup": {
      const [register, set] = [number(2), readValue(attributes, 1, decodeString)];
      if (register === undefined || set === undefined || number(3) !== undefined) return undefined;
      return { name: word, register, set, flags: number(5) ?? 0 };
    }
    case "masq":
      return attributes.length === 0 ? { name: word } : undefined;
    default:
      return undefined;
  }
}

/** Decodes an element of a rule's list. An expression in a form that Berth does not write becomes `other`. */
export function decodeExpression({ value }: Attribute): Expression {
  const list = decodeAttributes(value);
  const word = readValue(list, NFTA_EXPR_NAME, decodeString);
  if (word === undefined) throw malformed("expression", 0, "no name", "NFTA_EXPR_NAME");
  const attributes = decodeAttributes(findValue(list, NFTA_EXPR_DATA) ?? new Uint8Array());
  return decodeBody(word, attributes) ?? { name: "other", word, attributes };
}
