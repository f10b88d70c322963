/**
 * The attachments that the runtimes of this node have cached: libcni keeps the result of each ADD until the DEL, one
 * file each (containernetworking/cni, libcni/api.go, `cachedInfo`), in /var/lib/cni/results for containerd, CRI-O and
 * podman; Multus keeps those of the networks that it attaches in its own /var/lib/cni/multus/results.
 */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import type { CniResult } from "../../cni/result.ts";
import { decodeResult } from "../../cni/result-versions.ts";
import { decodeCniVersion } from "../../cni/version.ts";
import { isMissing, messageOf } from "../../lib/describe.ts";
import { readRegular } from "../../lib/regular-file.ts";
import { tryOr } from "../../lib/try-or.ts";
import { MAX_DEFINITION_BYTES } from "./definitions.ts";

export interface CachedAttachment {
  /** Path of the file. */
  readonly source: string;
  readonly containerId: string;
  readonly ifName: string;
  readonly network: string;
  /** Path of the pod's network namespace; undefined if neither file nor result has it. */
  readonly netns: string | undefined;
  /** Arguments from CNI_ARGS: `K8S_POD_NAMESPACE` and so on. */
  readonly args: ReadonlyMap<string, string>;
  readonly result: CniResult;
  /** `ipam.type` of each plugin of the configuration that the file holds; empty if there is none. */
  readonly ipams: readonly string[];
}

const cachedInfo = z.object({
  kind: z.literal("cniCacheV1"),
  containerId: z.string().min(1),
  ifName: z.string().min(1),
  networkName: z.string(),
  netns: z.string().optional(),
  cniArgs: z.array(z.tuple([z.string(), z.string()])).nullish(),
  result: z.looseObject({ cniVersion: z.unknown() }),
  /** The network's configuration, base64. */
  config: z.string().optional(),
});

const plugin = z.looseObject({ ipam: z.looseObject({ type: z.string() }).optional().catch(undefined) });

/** A list of plugins, or one plugin. */
const networkConfig = plugin.extend({ plugins: z.array(plugin).optional() });

/**
 * Returns all attachments in the directories; a missing directory has none. Each problem is a sentence that names the
 * file or directory.
 */
export function readRuntimeCache(directories: readonly string[]) {
  const attachments: CachedAttachment[] = [];
  const problems: string[] = [];
  for (const directory of directories) {
    for (const name of listFiles(directory, problems)) {
      const path = join(directory, name);
      try {
        attachments.push(readCached(path));
      } catch (error) {
        problems.push(`${path} cannot be decoded; skipped: ${messageOf(error)}`);
      }
    }
  }
  return { attachments, problems };
}

function listFiles(directory: string, problems: string[]): readonly string[] {
  try {
    return readdirSync(directory).toSorted();
  } catch (error) {
    if (!isMissing(error)) problems.push(`${directory} cannot be read: ${messageOf(error)}`);
    return [];
  }
}

function readCached(path: string): CachedAttachment {
  const text = readRegular(path, MAX_DEFINITION_BYTES).bytes.toString("utf8");
  const { containerId, ifName, networkName, netns, cniArgs, result, config } = cachedInfo.parse(JSON.parse(text));
  decodeCniVersion(result.cniVersion, "result.cniVersion");
  const decoded = decodeResult(result, "result");
  const sandbox = decoded.interfaces.find(({ name, sandbox }) => name === ifName && sandbox !== undefined)?.sandbox;
  const args = new Map(cniArgs ?? []);
  return {
    ...{ source: path, containerId, ifName, network: networkName, netns: netns || sandbox, args, result: decoded },
    ipams: ipamsOf(config),
  };
}

/** A configuration that cannot be read names none: it was the runtime's, and the result is what counts. */
function ipamsOf(config: string | undefined): string[] {
  const text = Buffer.from(config ?? "", "base64").toString();
  const { plugins = [], ...single } = tryOr(() => networkConfig.parse(JSON.parse(text)), networkConfig.parse({}));
  return [single, ...plugins].flatMap(({ ipam }) => ipam?.type ?? []);
}
