/** `berthctl blocks`: blocks of addresses that several clusters lease from a hub (docs/clusters.md). */
import { type Command, Option } from "commander";
import { splitList } from "../../../host/cli/arguments.ts";
import { askForRecord } from "../../../host/cli/ask-agent.ts";
import { type CommandLine, type OutputFlags, withRecordOutput } from "../../../host/cli/command-line.ts";
import { ExitCode, UsageError } from "../../../host/cli/exit-code.ts";
import { parseSpan } from "../../../host/cli/times.ts";
import { formatRange, parseRange, type Range } from "../../../host/net/range.ts";
import { cutRanges } from "../blocks/cut-ranges.ts";
import { type ProbeRecord, probeRecord } from "../probe/probe-record.ts";
import { addListBlocks } from "./blocks/add-list.ts";
import type { AdoptOptions } from "./blocks/adopt.ts";
import type { HubFlags, Places } from "./blocks/hub.ts";

export function addBlocks(cli: CommandLine): void {
  const blocks = cli.command("blocks", "Blocks of addresses that clusters lease from a hub", [
    "blocks",
    "blocks leave --pool lan --hub-kubeconfig hub.conf",
  ]);
  // In the order of the help.
  addListBlocks(cli, blocks);
  addAdopt(cli, blocks);
  addLeave(cli, blocks);
  addRelease(cli, blocks);
  addRejoin(cli, blocks);
  addProbe(cli, blocks);
  for (const command of blocks.commands) cli.withExamples(command, EXAMPLES[command.name()] ?? []);
}

const HUB = "--hub-kubeconfig hub.conf";

const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  list: ["blocks list", "blocks list -o yaml"],
  adopt: [`blocks adopt --range lan --pool lan ${HUB} --dry-run`, `blocks adopt --range lan --pool lan,dmz ${HUB}`],
  leave: [`blocks leave --pool lan ${HUB}`, `blocks leave --pool lan --context east ${HUB}`],
  release: [
    `blocks release --cluster east --i-know-it-is-off ${HUB}`,
    `blocks release --cluster east --range lan --i-know-it-is-off ${HUB}`,
  ],
  rejoin: [
    `blocks rejoin --range lan --i-know-its-copy-is-off ${HUB}`,
    `blocks rejoin --range lan --member east-2 --i-know-its-copy-is-off ${HUB}`,
  ],
};

/** Most addresses of one question to an agent. */
const ADDRESSES_AT_ONCE = 256;

/**
 * Time between two rounds of probes. Three rounds take ten minutes, because agents of a cluster that is back trust an
 * answer for eight minutes (docs/decisions/0064); shorter ones are for tests.
 */
const PROBE_INTERVAL = "5m";

function addAdopt(cli: CommandLine, blocks: Command): void {
  withHub(
    blocks
      .command("adopt")
      .description("Turn pools whose ranges were cut by hand into blocks of a range; pods keep their addresses"),
  )
    .requiredOption("--range <name>", "the AddressRange of the hub")
    .requiredOption("--pool <names>", "pools of this cluster, with commas: all that it has of the range", splitList)
    .option("--member <name>", "name of this cluster's RangeMember, if that does not know it yet")
    .option("--other <file...>", "kubeconfigs of the segment's other clusters: what they have is left to them", [])
    .option("--dry-run", "show the blocks, or what is in the way, and do nothing")
    .action((flags: HubFlags & AdoptOptions) =>
      cli.run({}, async (call) => {
        const { adoptPools } = await import("./blocks/adopt.ts");
        return onHub(cli, flags, (places) => adoptPools(cli, call, places, flags));
      }),
    );
}

function addLeave(cli: CommandLine, blocks: Command): void {
  withHub(
    blocks
      .command("leave")
      .description("Give a pool its blocks as ranges, which the hub excludes from now on; pods keep their addresses"),
  )
    .requiredOption("--pool <name>", "the pool of this cluster")
    .action((flags: HubFlags & { readonly pool: string }) =>
      cli.run({}, async (call) => {
        const { leaveRange } = await import("./blocks/leave.ts");
        return onHub(cli, flags, (places) => leaveRange(call, places, flags));
      }),
    );
}

function addRelease(cli: CommandLine, blocks: Command): void {
  withHub(
    blocks
      .command("release")
      .description("Release a lost cluster, if three rounds of probes find its addresses silent: its blocks are free"),
  )
    .requiredOption("--cluster <name>", "the lost cluster, by spec.member of its RangeMembers")
    .requiredOption("--i-know-it-is-off", "nothing of it runs, and it will not start again by itself")
    .option("--range <name>", "only in this AddressRange; default: in all")
    .addOption(new Option("--interval <duration>", "from one round to the next").default(PROBE_INTERVAL).hideHelp())
    .action((flags: HubFlags & { readonly cluster: string; readonly range?: string; readonly interval: string }) =>
      cli.run({}, async (call) => {
        const { releaseCluster } = await import("./blocks/release.ts");
        const intervalMs = parseSpan("--interval", flags.interval);
        return onHub(cli, flags, (places) =>
          releaseCluster(cli, call, places, { lost: flags.cluster, range: flags.range, intervalMs }),
        );
      }),
    );
}

function addRejoin(cli: CommandLine, blocks: Command): void {
  withHub(
    blocks.command("rejoin").description("Let this cluster lease again after it was restored, copied, or released"),
  )
    .requiredOption("--range <name>", "the AddressRange of the hub")
    .option("--member <name>", "its name in the range, if another one claims its UID, too")
    .requiredOption("--i-know-its-copy-is-off", "no other cluster acts in this one's name any more")
    .action((flags: HubFlags & { readonly range: string; readonly member?: string }) =>
      cli.run({}, async (call) => {
        const { rejoinRange } = await import("./blocks/rejoin.ts");
        return onHub(cli, flags, (places) => rejoinRange(cli, call, places, flags));
      }),
    );
}

/** The other commands call it in the agents' pods. */
function addProbe(cli: CommandLine, blocks: Command): void {
  withRecordOutput(
    blocks
      .command("probe", { hidden: true })
      .description("Ask which machines answer for addresses on the segment of a subnet"),
  )
    .argument("<subnet>", "the network")
    .option("--space <name>", "address space", "")
    .option("--ranges <list>", "addresses and ranges; default: none, and only the node's link is shown", splitList, [])
    .action((subnet: string, flags: OutputFlags & { readonly space: string; readonly ranges: readonly string[] }) =>
      cli.runOnAgents(flags, async (socket, { out }) => {
        const found = await probe(socket, { subnet, space: flags.space, ranges: flags.ranges.map(requireRange) });
        await out.report(linesOf(found), found);
        return ExitCode.Success;
      }),
    );
}

interface Question {
  readonly subnet: string;
  readonly space: string;
  readonly ranges: readonly Range[];
}

async function probe(socket: string, { subnet, space, ranges }: Question): Promise<ProbeRecord> {
  const limits = { addresses: ADDRESSES_AT_ONCE, ranges: ADDRESSES_AT_ONCE };
  const parts = ranges.length === 0 ? [[]] : cutRanges(ranges, limits);
  let found: ProbeRecord = { answered: [] };
  for (const part of parts) {
    const listed = part.map((range): [string, string] => ["range", formatRange(range)]);
    const query = new URLSearchParams([["subnet", subnet], ["space", space], ...listed]);
    const { link, answered } = await askForRecord(probeRecord, socket, `/v1/probe?${query}`, "POST");
    if (link === undefined) return { answered: found.answered };
    found = { link, answered: [...found.answered, ...answered] };
  }
  return found;
}

function requireRange(text: string): Range {
  const range = parseRange(text);
  if (range === undefined) throw new UsageError(`Option --ranges: found ${JSON.stringify(text)}, want addresses`);
  return range;
}

function linesOf({ link, answered }: ProbeRecord): string[] {
  if (link === undefined) return ["No pod of this node has an address of the segment: nothing was probed"];
  const found = answered.map(({ address, mac }) => `${address}: ${mac ?? "a machine"} answers`);
  return [`Probed on link ${link}`, ...found];
}

/** Adds the option of a command that writes AddressRanges. */
function withHub(command: Command): Command {
  return command.requiredOption("--hub-kubeconfig <file>", "kubeconfig of an administrator of the hub");
}

async function onHub(
  cli: CommandLine,
  flags: HubFlags,
  work: (places: Places) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { withPlaces } = await import("./blocks/hub.ts");
  return withPlaces(cli, flags, work);
}
