/**
 * `berthctl adopt`: turns addresses of running pods from another IPAM into Berth's allocations (docs/migration.md).
 * Writes nothing without --apply.
 */

import { askAgent, refusalOf } from "../../host/cli/ask-agent.ts";
import { type CommandLine, type OutputFlags, withRecordOutput } from "../../host/cli/command-line.ts";
import { ExitCode } from "../../host/cli/exit-code.ts";
import { decode } from "../../host/lib/schema.ts";
import { type AdoptedAddress, type AdoptionRecord, adoptionRecord } from "./adoption/adoption-record.ts";

interface AdoptFlags extends OutputFlags {
  readonly results: readonly string[];
  readonly netns: readonly string[];
  readonly apply?: true;
  readonly undo?: true;
}

export function addAdopt(cli: CommandLine): void {
  withRecordOutput(
    cli.command("adopt", "Record addresses that another IPAM gave running pods as theirs in Berth, without a restart", [
      "adopt",
      "adopt --apply",
    ]),
  )
    .option("--results <directory...>", "directories with cached results of runtimes, and of Multus", [
      "/var/lib/cni/results",
      "/var/lib/cni/multus/results",
    ])
    .option("--netns <directory...>", "directories with network namespaces of pods", [
      "/run/netns",
      "/run/docker/netns",
    ])
    .option("--apply", "record them; without it they are only listed")
    .option("--undo", "release what was adopted, for the way back; the pods keep their addresses")
    .action((flags: AdoptFlags) =>
      cli.runOnAgents(flags, async (socket, { out }) => {
        const path = `/v1/adopt?${queryOf(flags)}`;
        const answer = await askAgent(socket, path, "POST");
        const decoded = decode(adoptionRecord, answer);
        if (!decoded.ok) throw refusalOf(socket, "/v1/adopt", answer, "POST");
        const record = decoded.value;
        await out.report(linesOf(record, flags), record);
        const isRefused = record.addresses.some(({ outcome }) => outcome === "refused");
        return isRefused || record.problems.length > 0 ? ExitCode.Problem : ExitCode.Success;
      }),
    );
}

function queryOf({ results, netns, apply, undo }: AdoptFlags): URLSearchParams {
  return new URLSearchParams([
    ...results.map((path) => ["results", path]),
    ...netns.map((path) => ["netns", path]),
    ...(apply === undefined ? [] : [["apply", ""]]),
    ...(undo === undefined ? [] : [["undo", ""]]),
  ]);
}

function linesOf({ addresses, problems }: AdoptionRecord, { apply, undo }: AdoptFlags): string[] {
  const counts = Map.groupBy(addresses, ({ outcome }) => outcome);
  const counted = [...counts].map(([outcome, some]) => `${some.length} ${outcome}`).join(", ");
  const ipams = [...new Set(addresses.flatMap((each) => each.ipams))].join(", ");
  return [
    ...addresses.map(lineOf),
    ...problems.map((text) => `! ${text}`),
    addresses.length === 0 ? "No pod of this node has an address of another IPAM in a pool" : counted,
    ...(ipams === "" ? [] : [`The runtime may still call ${ipams} when these pods end: keep the plugin until then`]),
    ...(apply === true ? [] : [`Dry run: nothing was written; --apply ${undo === true ? "releases" : "adopts"}`]),
  ];
}

function lineOf({ address, namespace, pod, interface: nic, pool, ipams, outcome, reason }: AdoptedAddress): string {
  const holder = pod === "" ? nic : `${namespace}/${pod} ${nic}`;
  const origin = [...(pool === "" ? [] : [`pool ${pool}`]), ...(ipams.length === 0 ? [] : [`by ${ipams.join(", ")}`])];
  const details = origin.length === 0 ? "" : ` (${origin.join(", ")})`;
  return `${reason === undefined ? "" : "! "}${address} ${holder}${details}: ${outcome}${reason === undefined ? "" : `: ${reason}`}`;
}
