/**
 * A conversion: reads a peer's objects or files, makes the plan, prints and applies it. Loaded only when `berthctl
 * convert` is called.
 */

import type { ClusterSource } from "../../host/cli/cluster-source.ts";
import type { Call, OutputFlags } from "../../host/cli/command-line.ts";
import { ExitCode, UsageError } from "../../host/cli/exit-code.ts";
import { parseSpan } from "./address-draft.ts";
import { convertCalico } from "./calico.ts";
import {
  type Applied,
  applyManifests,
  applyPatches,
  inputOf,
  listInput,
  listLeftovers,
  readTarget,
} from "./cluster.ts";
import { type ConversionPlan, type Peer, PlanBuilder, type PlanOptions, patchName } from "./conversion-plan.ts";
import { readInputFiles, writeFiles } from "./files.ts";
import { convertHostLocal, splitNode } from "./host-local.ts";
import { type Input, readInput } from "./input.ts";
import { formatManifests, isEmpty, isLossy, planFiles, planRecord, reportLines } from "./output.ts";
import { convertSpiderpool } from "./spiderpool.ts";
import { convertWhereabouts } from "./whereabouts.ts";
import { usePodAddresses } from "./workloads.ts";

const CONVERTERS: Readonly<Record<Peer, (input: Input, builder: PlanBuilder) => void>> = {
  spiderpool: convertSpiderpool,
  whereabouts: convertWhereabouts,
  "host-local": convertHostLocal,
  calico: convertCalico,
};

export interface ConvertFlags extends OutputFlags {
  readonly out?: string;
  readonly suffix: string;
  readonly ips?: readonly string[];
  readonly apply?: true;
  readonly patch?: readonly string[];
  readonly acceptLosses?: true;
}

export interface Words {
  readonly ipam: Peer;
  readonly paths: readonly string[];
  readonly flags: ConvertFlags;
}

/** Names all patches of a plan. */
const ALL_PATCHES = "all";

/** Returns the plan; `read` has the findings of reading the input. */
export function convert(read: (builder: PlanBuilder) => Input, options: PlanOptions): ConversionPlan {
  const builder = new PlanBuilder(options);
  const input = read(builder);
  CONVERTERS[options.peer](input, builder);
  usePodAddresses(input.objects, builder);
  return builder.finish();
}

/** `source` is given if the input is read from the cluster, or the conversion is applied. */
export async function runConversion(call: Call, words: Words, source: ClusterSource | undefined): Promise<ExitCode> {
  const { flags } = words;
  const plan = await planOf(words, source);
  await print(call, plan, flags);
  const ending = isLossy(plan) || isEmpty(plan) ? ExitCode.Problem : ExitCode.Success;
  if (flags.apply !== true || source === undefined) return ending;
  if (isLossy(plan) && flags.acceptLosses !== true) {
    call.note("Nothing was applied: the conversion is incomplete. --accept-losses applies it nevertheless");
    return ending;
  }
  return (await apply(call, source, { plan, patches: flags.patch ?? [] })) ? ending : ExitCode.Problem;
}

async function planOf({ ipam, paths, flags }: Words, source: ClusterSource | undefined): Promise<ConversionPlan> {
  const target = source === undefined ? { pools: [], allocated: new Map() } : await readTarget(source);
  const ips = flags.ips?.map((text) => {
    const range = parseSpan(text);
    if (range !== undefined) return range;
    throw new UsageError(`Option --ips: found ${JSON.stringify(text)}, want first-last or a network in CIDR form`);
  });
  const options: PlanOptions = { peer: ipam, suffix: flags.suffix, target, ips };
  if (paths.length === 0 && source !== undefined) {
    const objects = await listInput(source, ipam);
    return convert(({ findings }) => inputOf(objects, findings), options);
  }
  const files = readInputFiles(paths.map((path) => (ipam === "host-local" ? splitNode(path) : { path })));
  return convert(({ findings }) => readInput(files, findings), options);
}

/**
 * Prints manifests on stdout and the report on stderr; with --out, manifests become files, and the report is on stdout.
 */
async function print({ out, note }: Call, plan: ConversionPlan, flags: ConvertFlags): Promise<void> {
  const report = reportLines(plan);
  if (flags.out !== undefined) writeFiles(flags.out, planFiles(plan));
  if (flags.output !== undefined) await out.value(planRecord(plan));
  else if (flags.out !== undefined || flags.apply === true) out.text(report.join("\n"));
  else {
    out.text(formatManifests(plan.manifests).trimEnd());
    note(report.join("\n"));
    const { nodeFiles, patches } = plan;
    if (nodeFiles.length + patches.length > 0)
      note("Files for nodes and patches are written with --out DIRECTORY only");
  }
}

interface Application {
  readonly plan: ConversionPlan;
  /** As named on the command line. */
  readonly patches: readonly string[];
}

/** Returns whether the API server accepted everything. */
async function apply({ note }: Call, source: ClusterSource, { plan, patches }: Application): Promise<boolean> {
  const known = plan.patches.map(patchName);
  for (const name of patches)
    if (name !== ALL_PATCHES && !known.includes(name)) note(`${name} needs no patch, or is not in the input`);
  const written = await applyManifests(source, plan);
  const isRefused = written.some(({ outcome }) => outcome === "refused");
  const chosen = plan.patches.filter((patch) => patches.includes(ALL_PATCHES) || patches.includes(patchName(patch)));
  if (isRefused && chosen.length > 0) note("No workload was patched: the API server refused an object");
  const patched = isRefused ? [] : await applyPatches(source, chosen);
  const all = [...written, ...patched];
  note(all.map(appliedLine).join("\n") || "Nothing to apply");
  for (const name of await listLeftovers(source, plan))
    note(`${name} is of an earlier conversion and no longer needed; delete it when no pod uses it`);
  return all.every(({ outcome }) => outcome !== "refused");
}

function appliedLine({ name, outcome, reason }: Applied): string {
  return reason === undefined ? `${name} ${outcome}` : `${name} ${outcome}: ${reason}`;
}
