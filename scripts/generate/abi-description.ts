/** assembly/abi.json as a value. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../setup/paths.mjs";

export interface AbiExport {
  readonly name: string;
  readonly doc: string;
  readonly params: readonly { readonly name: string; readonly is: string }[];
  /** The contents of the exchange buffer before the call. */
  readonly input?: string;
  /** The contents of the exchange buffer after the call. */
  readonly output?: string;
  readonly result: string;
  readonly statuses: readonly string[];
}

export interface AbiDescription {
  readonly name: string;
  readonly version: { readonly major: number; readonly minor: number };
  readonly conventions: Readonly<Record<string, string>>;
  readonly statuses: readonly { readonly name: string; readonly code: number; readonly doc: string }[];
  readonly ceilings: readonly { readonly name: string; readonly value: number; readonly doc: string }[];
  readonly policies: readonly { readonly name: string; readonly value: number; readonly doc: string }[];
  readonly counts: readonly { readonly name: string; readonly at: number; readonly as: string; readonly doc: string }[];
  readonly exports: readonly AbiExport[];
}

interface Written extends Omit<AbiDescription, "exports"> {
  /** Descriptions of the parameters, by name, in order. */
  readonly exports: readonly (Omit<AbiExport, "params"> & { readonly params: Readonly<Record<string, string>> })[];
}

const written: Written = JSON.parse(readFileSync(join(root, "assembly", "abi.json"), "utf8"));

export const ABI: AbiDescription = {
  ...written,
  exports: written.exports.map(({ params, ...rest }) => ({
    ...rest,
    params: Object.entries(params).map(([name, is]) => ({ name, is })),
  })),
};
