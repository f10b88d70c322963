/** The part of a family's messages that stands before the attributes, as a table of fields: bytes ↔ values. */
import { type Attribute, decodeAttributes, encodeAttributes } from "./attribute.ts";
import { malformed } from "./error.ts";
import type { Message } from "./message.ts";
import { int32At, putUint16, putUint32, uint8At, uint16At, uint32At } from "./numbers.ts";

const READ = { uint8: uint8At, uint16: uint16At, int32: int32At, uint32: uint32At } as const;
const WRITE = {
  uint8: (bytes: Uint8Array, at: number, value: number) => bytes.set([value], at),
  uint16: putUint16,
  int32: putUint32,
  uint32: putUint32,
} as const;

interface WithAttributes {
  readonly attributes: readonly Attribute[];
}

type Fields<T> = Readonly<Record<Exclude<keyof T, "attributes">, readonly [at: number, as: keyof typeof READ]>>;

interface FixedPart<T extends WithAttributes> {
  /** For errors: `route message`. */
  readonly name: string;
  /** RTM_NEW* */
  readonly type: number;
  readonly typeName: string;
  readonly bytes: number;
  readonly fields: Fields<T>;
}

interface FixedPartCodec<T extends WithAttributes> {
  /** Fields that are left out are 0. */
  readonly encode: (message: Partial<T>) => Uint8Array;
  /** Throws NetlinkError for a message of another type, and for false lengths. */
  readonly decode: (message: Message) => T;
  /** The same; with `wanted`, attributes of other types are left out. */
  readonly decodeWanted: (message: Message, wanted?: ReadonlySet<number>) => T;
}

export function fixedPart<T extends WithAttributes>(fixed: FixedPart<T>): FixedPartCodec<T> {
  const fields = Object.entries(fixed.fields) as [keyof T, Fields<T>[keyof Fields<T>]][];
  const decodeWanted = ({ type, payload }: Message, wanted?: ReadonlySet<number>): T => {
    if (type !== fixed.type) throw malformed(fixed.name, 4, `type ${type}`, `${fixed.typeName} (${fixed.type})`);
    if (payload.length < fixed.bytes)
      throw malformed(fixed.name, 0, `${payload.length} bytes`, `${fixed.bytes} or more`);
    const values: Partial<Record<keyof T, unknown>> = {};
    for (const [name, [at, as]] of fields) values[name] = READ[as](payload, at);
    return Object.assign(values, { attributes: decodeAttributes(payload, fixed.bytes, wanted) }) as unknown as T;
  };
  return {
    encode: (message) => {
      const bytes = encodeAttributes(message.attributes ?? [], fixed.bytes);
      for (const [name, [at, as]] of fields) WRITE[as](bytes, at, (message[name] as number | undefined) ?? 0);
      return bytes;
    },
    decode: (message) => decodeWanted(message),
    decodeWanted,
  };
}
