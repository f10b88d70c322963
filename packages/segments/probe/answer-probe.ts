/** POST /v1/probe of the agent: which machines answer on the segment of a subnet (docs/clusters.md). */
import type { Backend } from "../../../host/agent/backend.ts";
import type { Routes } from "../../../host/agent/operate/status-api.ts";
import { type Answer, answerJson, answerRefusal } from "../../../host/agent/server/answer.ts";
import { describeValue } from "../../../host/lib/describe.ts";
import { SerialQueue } from "../../../host/lib/serial.ts";
import type { Ip } from "../../../host/net/ip.ts";
import { parsePrefix, prefixContains } from "../../../host/net/prefix.ts";
import { parseRange, type Range } from "../../../host/net/range.ts";
import { MAX_PROBED, probeSegment } from "./probe-segment.ts";

/** One after another: that limits the frames on the segment. */
export function openProbe(backend: Pick<Backend, "ipam">): Routes {
  const probes = new SerialQueue();
  return { "/v1/probe": (query, signal) => probes.run(() => answerProbe(backend.ipam, query, signal)) };
}

async function answerProbe(
  { inventory, detection }: Backend["ipam"],
  query: URLSearchParams,
  signal = new AbortController().signal,
): Promise<Answer> {
  const subnet = parsePrefix(query.get("subnet") ?? "");
  if (subnet === undefined)
    return answerRefusal(400, `subnet: found ${describeValue(query.get("subnet"))}, want a network`);
  const ranges = query.getAll("range").map(parseRange);
  const known = ranges.filter((range) => range !== undefined && prefixContains(subnet, range.first));
  const addresses = known.flatMap((range) => (range === undefined ? [] : addressesOf(range)));
  if (known.length < ranges.length || addresses.length > MAX_PROBED)
    return answerRefusal(400, `range: found another list, want at most ${MAX_PROBED} addresses of the subnet`);
  const question = { subnet, space: query.get("space") ?? "", addresses };
  return answerJson(await probeSegment({ registry: inventory.registry, detection }, question, signal));
}

/** In ascending order; of too many, one more than may be probed. */
function addressesOf({ first: { family, value }, last }: Range): Ip[] {
  const count = Math.min(Number(last.value - value) + 1, MAX_PROBED + 1);
  return Array.from({ length: count }, (_, at) => ({ family, value: value + BigInt(at) }));
}
