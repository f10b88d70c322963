/**
 * A driver of a runtime that does not speak CNI. The shim sends its calls under the driver's name; as calls of a CNI
 * runtime they need no second form in the spool, the audit log or the owner of addresses.
 */
import type { PLUGINS } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import type { NetworkFiles } from "./definitions.ts";
import type { Plugin } from "./plugin.ts";

/** A request as the socket server and the spool have it. */
export interface RawRequest {
  /** Path segment after /v1/cni/: the name of a plugin or driver. */
  readonly plugin: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export type CniPlugins = Readonly<Record<(typeof PLUGINS)[number], Plugin>>;

/** Runs translated calls. */
export interface DriverPlugin extends Plugin {
  /** Answers a call that concerns no container; undefined for any other. Throws ConfigError. */
  answer(call: RawRequest): object | undefined;
  /** Returns a call with the variables and the network list of a CNI runtime. Throws ConfigError, CniError. */
  translate(call: RawRequest): RawRequest;
  formatResult(result: CniResult): object;
}

export interface Driver {
  readonly name: string;
  /** Directory of its networks, for the embedded mode; may be missing. */
  readonly directory: string;
  readonly files: NetworkFiles;
  open(plugins: CniPlugins): DriverPlugin;
}
