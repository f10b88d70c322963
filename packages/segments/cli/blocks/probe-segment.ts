/** Asks agents on a range's segment which of its addresses a machine answers for. */

import { type AgentPod, askAgents, isRunning, listAgents } from "../../../../host/cli/cluster-agents.ts";
import type { CommandLine } from "../../../../host/cli/command-line.ts";
import { ProblemError } from "../../../../host/cli/exit-code.ts";
import { tryTo } from "../../../../host/cli/read-objects.ts";
import { sizeOf, spansOf } from "../../../../host/core/spans.ts";
import { decode } from "../../../../host/lib/schema.ts";
import { formatPrefix } from "../../../../host/net/prefix.ts";
import { formatRange, type Range } from "../../../../host/net/range.ts";
import type { AddressRangeSpec } from "../../address-range.ts";
import { cutRanges } from "../../blocks/cut-ranges.ts";
import { type ProbeRecord, probeRecord } from "../../probe/probe-record.ts";

/** Addresses that agents probe in a second, and 3 times as many frames. */
const ADDRESSES_PER_S = 256;

/** Most of one call: an agent takes a minute. */
const MAX_CALL = { addresses: 60 * ADDRESSES_PER_S, ranges: 128 };

interface FoundMachine {
  readonly address: string;
  readonly mac: string | undefined;
  /** The node whose agent had the answer. */
  readonly node: string;
}

type Segment = Pick<AddressRangeSpec, "subnet" | "addressSpace">;

/** Returns how long probing the addresses takes: seconds. */
export function probeSeconds(ranges: readonly Range[]): number {
  return Math.ceil(Number(sizeOf(spansOf(ranges))) / ADDRESSES_PER_S);
}

export class SegmentProber {
  readonly #cli: CommandLine;
  readonly #segment: Segment;
  readonly #agents: readonly AgentPod[];
  #turn = 0;

  private constructor(cli: CommandLine, segment: Segment, agents: readonly AgentPod[]) {
    this.#cli = cli;
    this.#segment = segment;
    this.#agents = agents;
  }

  /** Rejects with ProblemError if no agent is on the segment. */
  static async open(cli: CommandLine, segment: Segment): Promise<SegmentProber> {
    const running = (await listAgents(cli.place)).filter(isRunning);
    const answers = await askAgents(running, wordsOf(segment, []), cli.place);
    const near = running.filter((_, at) => recordOf(answers[at])?.link !== undefined);
    if (near.length > 0) return new SegmentProber(cli, segment, near);
    throw new ProblemError(
      `No agent is on the segment of ${formatPrefix(segment.subnet)}: a node is if one of its pods has an address there`,
    );
  }

  get nodes(): readonly string[] {
    return this.#agents.map(({ node }) => node);
  }

  /** Each call goes to the next agent, so that a second round asks from elsewhere. Rejects if one cannot tell. */
  async probe(ranges: readonly Range[], signal: AbortSignal): Promise<readonly FoundMachine[]> {
    const found: FoundMachine[] = [];
    for (const part of cutRanges(ranges, MAX_CALL)) {
      signal.throwIfAborted();
      const agent = this.#agents[this.#turn++ % this.#agents.length] as AgentPod;
      const [answer] = await askAgents([agent], wordsOf(this.#segment, part), this.#cli.place);
      const record = recordOf(answer);
      if (record?.link === undefined)
        throw new ProblemError(
          `The agent of node "${agent.node}" cannot probe: ${answer?.error || "it has no pod there any more"}`,
        );
      found.push(...record.answered.map(({ address, mac }) => ({ address, mac, node: agent.node })));
    }
    this.#turn++;
    return found;
  }
}

function wordsOf({ subnet, addressSpace }: Segment, ranges: readonly Range[]): readonly string[] {
  const space = addressSpace === "" ? [] : ["--space", addressSpace];
  const listed = ranges.length === 0 ? [] : ["--ranges", ranges.map(formatRange).join(",")];
  return ["blocks", "probe", formatPrefix(subnet), ...space, ...listed, "-o", "json"];
}

/** An agent of an earlier release does not know the command. */
function recordOf(answer: { readonly exitCode: number; readonly stdout: string } | undefined): ProbeRecord | undefined {
  if (answer?.exitCode !== 0) return undefined;
  const decoded = tryTo(() => decode(probeRecord, JSON.parse(answer.stdout)));
  return decoded?.ok ? decoded.value : undefined;
}

export function describeMachine({ address, mac, node }: FoundMachine): string {
  return `${address}: ${mac ?? "a machine"} answers, as the agent of node ${node} has found`;
}
