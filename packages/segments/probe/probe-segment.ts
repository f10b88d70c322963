/**
 * Probes addresses of other clusters that an administrator asks about, on the segment of a subnet (docs/clusters.md).
 * Effects: frames on the node's link.
 */

import { findNodeLink, findPoolLink } from "../../../host/agent/detection/links.ts";
import type { Detection } from "../../../host/agent/detection/open-detection.ts";
import type { ProbeLink } from "../../../host/coordinator/probe.ts";
import { equalIp, formatIp, type Ip } from "../../../host/net/ip.ts";
import type { Prefix } from "../../../host/net/prefix.ts";
import type { Registry } from "../../../host/registry/registry.ts";
import type { ProbeRecord } from "./probe-record.ts";

/** Most addresses of one question: three frames for each go out within {@link WINDOW_MS}. */
export const MAX_PROBED = 256;

/** Time in which a machine must answer: milliseconds. With {@link MAX_PROBED} it is the limit of the frames. */
const WINDOW_MS = 1_000;

/** Most machines that are named for one question; a segment where all addresses answer would take very long. */
const MAX_ANSWERS = 8;

interface ProbeDeps {
  readonly registry: Pick<Registry, "list">;
  readonly detection: Pick<Detection, "links" | "detect" | "random">;
  /** Default: the kernel's. */
  readonly findNodeLink?: (name: string) => ProbeLink | undefined;
}

interface ProbeQuestion {
  readonly subnet: Prefix;
  readonly space: string;
  readonly addresses: readonly Ip[];
}

/** Without addresses it only says whether the node is on the segment. Rejects with DetectionError. */
export async function probeSegment(
  { registry, detection, ...given }: ProbeDeps,
  { subnet, space, addresses }: ProbeQuestion,
  signal: AbortSignal,
): Promise<ProbeRecord> {
  const { links, detect, random } = detection;
  const wanted = { pool: "", space, ip: subnet.ip, prefixLength: subnet.length };
  const deps = { registry, findParentName: links.findParentName, findNodeLink: given.findNodeLink ?? findNodeLink };
  const link = await findPoolLink(deps, wanted);
  if (link === undefined) return { answered: [] };
  const answered: ProbeRecord["answered"] = [];
  let left = addresses;
  while (left.length > 0 && answered.length < MAX_ANSWERS) {
    const found = await detect({ link, addresses: left, windowMs: WINDOW_MS, random, signal });
    if (found === undefined) break;
    answered.push({ address: formatIp(found.ip), ...(found.mac === undefined ? {} : { mac: found.mac }) });
    left = left.filter((ip) => !equalIp(ip, found.ip));
  }
  return { link: link.name, answered };
}
