/** A plan as files and as text. Pure: the same plan gives the same bytes. */
import { Document, Scalar, visit } from "yaml";
import { escapeUnprintable, printableLines } from "../../host/lib/printable.ts";
import { type ConversionPlan, type Manifest, patchName, type WorkloadPatch } from "./conversion-plan.ts";
import { type Finding, LEVELS } from "./findings.ts";
import { NETWORK_DEFINITION_KIND } from "./networks.ts";

/** A file of the output; `path` is relative. */
export interface OutputFile {
  readonly path: string;
  readonly text: string;
}

/** Returns whether the conversion is incomplete. */
export function isLossy({ findings }: ConversionPlan): boolean {
  return findings.some(({ level }) => level === "problem" || level === "lost");
}

/** Returns the plan as JSON has it. */
export function planRecord(plan: ConversionPlan): object {
  const { peer, manifests, nodeFiles, patches, used, findings } = plan;
  return { peer, isLossy: isLossy(plan), findings, manifests, nodeFiles, patches, used };
}

/**
 * Texts with unprintable characters are quoted, because only quoted text has escapes. JSON in several lines stays
 * readable.
 */
function formatYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === "string" && escapeUnprintable(node.value) !== node.value)
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return escapeUnprintable(document.toString({ lineWidth: 0 }));
}

export function formatManifests(manifests: readonly Manifest[]): string {
  return manifests.map((manifest) => `---\n${formatYaml(manifest)}`).join("");
}

const GROUPS: readonly (readonly [path: string, kinds: readonly string[]])[] = [
  ["10-reserved.yaml", ["ReservedIP"]],
  ["20-pools.yaml", ["Subnet", "IPPool"]],
  ["30-coordinator.yaml", ["Coordinator"]],
  ["40-networks.yaml", [NETWORK_DEFINITION_KIND]],
];

/** Returns the files of the plan, in the order in which they are applied. */
export function planFiles(plan: ConversionPlan): OutputFile[] {
  const { manifests, nodeFiles, patches } = plan;
  const groups = GROUPS.flatMap(([path, kinds]): OutputFile[] => {
    const members = manifests.filter(({ kind }) => kinds.includes(kind));
    return members.length === 0 ? [] : [{ path: `manifests/${path}`, text: formatManifests(members) }];
  });
  const lists = nodeFiles.map(({ path, text }) => ({ path: `cni/${path}`, text }));
  return [
    ...groups,
    ...lists,
    ...patches.map((each) => patchFile("patches", each, each.patch)),
    ...patches.map((each) => patchFile("rollback", each, each.rollback)),
    { path: "report.txt", text: `${printableLines(reportLines(plan).join("\n"))}\n` },
    { path: "report.json", text: `${escapeUnprintable(JSON.stringify(planRecord(plan), undefined, 2))}\n` },
  ];
}

function patchFile(folder: string, patch: WorkloadPatch, value: object): OutputFile {
  const path = `${folder}/${patchName(patch).replaceAll("/", ".")}.yaml`;
  const { namespace, kind, name } = patch;
  const scope = namespace === "" ? "" : ` -n ${namespace}`;
  const command = `# kubectl patch ${kind.toLowerCase()} ${name}${scope} --type merge --patch-file ${path}`;
  return { path, text: `${command}\n${formatYaml(value)}` };
}

const HEADINGS = {
  problem: "Problems: the input is invalid or contradicts itself, and this part was not converted",
  lost: "Lost: no counterpart in Berth",
  changed: "Changed: the counterpart differs",
  unneeded: "Not needed: no counterpart, and Berth does without",
} as const satisfies Record<Finding["level"], string>;

/** Returns whether the input has nothing of the other IPAM. */
export function isEmpty({ manifests, nodeFiles, patches, used, findings }: ConversionPlan): boolean {
  return [manifests, nodeFiles, patches, used, findings].every(({ length }) => length === 0);
}

/** Returns the report for a person: counts, then findings by level. */
export function reportLines(plan: ConversionPlan): string[] {
  const { manifests, nodeFiles, patches, used, findings } = plan;
  const kinds = Map.groupBy(manifests, ({ kind }) => kind);
  const counts = [
    ...[...kinds].map(([kind, members]) => `${members.length} ${kind}`),
    `${count(nodeFiles.length, "file")} for nodes`,
    count(patches.length, "patch", "patches"),
    `${count(used.length, "address", "addresses")} in use`,
  ];
  const sections = LEVELS.flatMap((level) => {
    const members = findings.filter((finding) => finding.level === level);
    return members.length === 0 ? [] : ["", `${HEADINGS[level]} (${members.length})`, ...members.map(findingLine)];
  });
  const whole = isEmpty(plan) ? `Nothing of ${plan.peer} was found` : "Nothing is lost";
  const conclusion = isLossy(plan) ? "The conversion is incomplete" : whole;
  return [`${conclusion}: ${counts.join(", ")}`, ...sections];
}

function findingLine({ source, object, field, found, text }: Finding): string {
  const where = field === "" ? "" : `, ${field}`;
  return `  ${object}${where}: ${found}: ${text} [${source}]`;
}

function count(number: number, one: string, several = `${one}s`): string {
  return `${number} ${number === 1 ? one : several}`;
}
