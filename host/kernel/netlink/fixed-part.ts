/** The part of a family's messages before the attributes, as a table of fields: bytes ↔ values. */
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

type MessageOf<Name extends string> = Readonly<Record<Name, number>> & { readonly attributes: readonly Attribute[] };

interface FixedPart<Name extends string> {
  /** For errors: `route message`. */
  readonly name: string;
  /** RTM_NEW* */
  readonly type: number;
  readonly typeName: string;
  readonly bytes: number;
  readonly fields: Readonly<Record<Name, readonly [at: number, as: keyof typeof READ]>>;
}

interface FixedPartCodec<Name extends string> {
  /** Absent fields are 0. */
  readonly encode: (message: Partial<MessageOf<Name>>) => Uint8Array;
  /** Throws NetlinkError for a message of another type, and for false lengths. */
  readonly decode: (message: Message) => MessageOf<Name>;
  /** As `decode`; with `wanted`, attributes of other types are left out. */
  readonly decodeWanted: (message: Message, wanted?: ReadonlySet<number>) => MessageOf<Name>;
}

export function fixedPart<Name extends string>(fixed: FixedPart<Name>): FixedPartCodec<Name> {
  const fields = Object.entries(fixed.fields) as [Name, FixedPart<Name>["fields"][Name]][];
  const decodeWanted = ({ type, payload }: Message, wanted?: ReadonlySet<number>): MessageOf<Name> => {
    if (type !== fixed.type) throw malformed(fixed.name, 4, `type ${type}`, `${fixed.typeName} (${fixed.type})`);
    if (payload.length < fixed.bytes)
      throw malformed(fixed.name, 0, `${payload.length} bytes`, `${fixed.bytes} or more`);
    const values: Partial<Record<Name, number>> = {};
    for (const [name, [at, as]] of fields) values[name] = READ[as](payload, at);
    return Object.assign(values as Record<Name, number>, {
      attributes: decodeAttributes(payload, fixed.bytes, wanted),
    });
  };
  return {
    encode: (message) => {
      const bytes = encodeAttributes(message.attributes ?? [], fixed.bytes);
      for (const [name, [at, as]] of fields) WRITE[as](bytes, at, message[name] ?? 0);
      return bytes;
    },
    decode: (message) => decodeWanted(message),
    decodeWanted,
  };
}
