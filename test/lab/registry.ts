/**
 * A real registry of images on loopback: distribution, or one with the API of referrers (scripts/reference/registry).
 *
 *   await using registry = await startRegistry({ directory });
 *   registry.host;                // 127.0.0.1:40123
 *
 * Effects: a child, a port, files in the folder.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { type Daemon, startDaemon } from "./daemon.ts";

const READY_MS = 30_000;

export interface RegistryOptions {
  /** The next registry there finds its contents, too. */
  readonly directory: string;
  /** Default: a port that is free, on 127.0.0.1. */
  readonly address?: string;
  /** Distribution's `auth`. */
  readonly auth?: object;
  readonly isReadOnly?: boolean;
  /** In memory, and with the API of referrers. */
  readonly hasReferrers?: boolean;
  /** How to start it elsewhere. */
  readonly start?: (argv: readonly string[]) => Promise<Daemon>;
}

export interface RunningRegistry extends AsyncDisposable {
  readonly host: string;
  /** SIGKILL. */
  kill(): Promise<void>;
}

export async function startRegistry(options: RegistryOptions): Promise<RunningRegistry> {
  const { directory, address = "127.0.0.1:0", auth, isReadOnly = false, hasReferrers = false } = options;
  const { start = (argv: readonly string[]) => startDaemon("registry", argv) } = options;
  mkdirSync(directory, { recursive: true });
  const file = join(directory, "registry.yaml");
  const maintenance = { readonly: { enabled: isReadOnly } };
  const config = {
    version: 0.1,
    log: { accesslog: { disabled: true }, level: "info" },
    storage: { filesystem: { rootdirectory: join(directory, "store") }, maintenance },
    http: { addr: address, secret: "one of the lab" },
    ...(auth === undefined ? {} : { auth }),
  };
  writeFileSync(file, stringify(config));
  const words = hasReferrers ? ["referrers", address] : ["serve", file];
  const env = ["env", "OTEL_TRACES_EXPORTER=none"];
  const program = [...env, join(referenceTool("registry").directory, "registry"), ...words];
  const daemon = await start(program);
  const listening = () => /listening on ([\d.]+:\d+)/.exec(daemon.output())?.[1];
  try {
    await daemon.until(async () => listening() !== undefined, READY_MS);
  } catch (error) {
    await daemon.kill();
    throw error;
  }
  return { host: listening() ?? "", kill: () => daemon.kill(), [Symbol.asyncDispose]: () => daemon.kill() };
}
