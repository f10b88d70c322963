/**
 * Finds the obstacles to leasing blocks: the controller's last report in the status of pools, and the hub's answer to
 * this program.
 */

import { error as fault, warning } from "../../../host/findings/problem.ts";
import type { KubeApi } from "../../../host/kubernetes/kube-api.ts";
import { messageOf } from "../../../host/lib/describe.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import type { Finding } from "../../../host/records/finding.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { describeSource, NO_REPORT, type SourceReason } from "../../../host/resources/pool-source.ts";
import { SourceFailure } from "../blocks/block-source.ts";
import { describeOutage, problemOf } from "../blocks/describe-problem.ts";
import { readShared, type SharedRange } from "../blocks/hub.ts";
import { NO_LEASES } from "../blocks/own-leases.ts";
import { barOf } from "../blocks/seal.ts";

/** A hub that is answered from here. */
export interface ReachedHub {
  readonly api: Pick<KubeApi, "call">;
  /** The file of its credentials. */
  readonly file: string;
}

interface HubQuestion {
  readonly pools: readonly IpPool[];
  /** UID of the cluster's namespace kube-system. */
  readonly cluster: string | undefined;
  /** Absent: only the controller's report counts. */
  readonly hub?: ReachedHub | undefined;
}

/** Pods continue with leased blocks, and the problem may pass by itself, or be intended. */
const WARNINGS: readonly string[] = ["HubAway", "RecordsAway", "ShareUsedUp", "RangeUsedUp"] satisfies SourceReason[];

const UNKNOWN = "The controller's log has the error";

const REMEDIES: Readonly<Partial<Record<string, string>>> = {
  HubAway: "Bring the hub, or the way to it, back; the controller's log has the error",
  HubNotTrusted: "Put the hub's authority and name into the kubeconfig of the Secret hub.kubeconfigSecret",
  TokenRefused: "Put a valid token into the kubeconfig of the Secret hub.kubeconfigSecret",
  Forbidden: "Bind the ClusterRole berth-range-member to the account, and write it as spec.user into the RangeMember",
  NoRange: "Make the AddressRange on the hub, or name another one in a new pool",
  OtherVersion: "Bring deploy/crds/addressranges.yaml and rangemembers.yaml of this version to the hub",
  OtherSubnet: "Make the pool's subnet that of the AddressRange",
  NotMember: "Make a RangeMember for the cluster on the hub",
  OtherCluster: "Set hub.member to a name that no other cluster has",
  Contested: "Find the other cluster, switch it off, and let this one rejoin",
  ShareUsedUp: "Raise maxBlocks of its RangeMember, or see what keeps blocks: kubectl berth blocks",
  RangeUsedUp: "Add a range, or see who has the blocks: kubectl berth blocks",
} satisfies Partial<Record<SourceReason, string>>;

/** Where the blocks are prefixes of Nautobot or NetBox. */
const RECORD_REMEDIES: Readonly<Partial<Record<string, string>>> = {
  RecordsAway: "Bring Nautobot or NetBox, or the way to it, back; the controller's log has the error",
  TokenRefused: "Put a valid token into the Secret records.tokenSecret",
  Forbidden: "Put a token into the Secret records.tokenSecret that may view, add, change and delete prefixes",
  NoRange: "Make the prefix there, in the namespace or VRF of records.spaces",
  OtherSubnet: "Give all pools of the prefix the same blockSize",
  Contested: "Find the other cluster, or let this one go on: docs/records.md, isRejoining",
  RangeUsedUp: "Make room in the prefix, or see who has the blocks: kubectl berth blocks",
} satisfies Partial<Record<SourceReason, string>>;

function blockProblem(reason: string, remedy = UNKNOWN) {
  return (WARNINGS.includes(reason) ? warning : fault)(reason, "{text}", remedy);
}

/** The obstacles to leasing blocks. Their ids are the reasons of the pools' condition Supplied. */
export const BLOCK_PROBLEMS = [...Object.entries(REMEDIES), ...Object.entries(RECORD_REMEDIES)].map((each) =>
  blockProblem(...each),
);

/** Returns at most two findings for each range or prefix. */
export async function findHub({ pools, cluster, hub }: HubQuestion): Promise<Finding[]> {
  const byRange = Map.groupBy(
    pools.filter(({ source }) => source !== undefined),
    ({ source }) => source?.range ?? "",
  );
  const found = [...byRange].map(async ([range, own]) => {
    const isPrefix = own.some(({ source }) => source?.prefix !== undefined);
    const answered = hub && !isPrefix ? await askHub(hub, range, own, cluster) : undefined;
    const said = saidOf(own, answered);
    return [...(said === undefined ? [] : [said]), ...(answered?.finding === undefined ? [] : [answered.finding])];
  });
  return (await Promise.all(found)).flat();
}

interface HubAnswer {
  readonly reason: string;
  readonly finding?: Finding;
}

/** The controller's report; undefined if there is none, or if the hub answers the same now. */
function saidOf(pools: readonly IpPool[], answered: HubAnswer | undefined): Finding | undefined {
  const { name, source: told } = pools.find(({ source }) => (source?.problem ?? "") !== "") ?? {};
  if (told === undefined) return undefined;
  const { reason, heard } = told.report ?? NO_REPORT;
  if (answered !== undefined && answered.reason === reason) return undefined;
  const since = heard === "" ? "" : `; it answered last at ${heard}`;
  const now = answered?.reason === "" ? "; from here it answers" : "";
  const about = reason === "OtherSubnet" ? `IPPool "${name}" leases nothing` : describeSource(told);
  const text = `${about}: ${told.problem}${since}${now}`;
  return blockProblem(reason, (told.prefix === undefined ? REMEDIES : RECORD_REMEDIES)[reason])({ text });
}

async function askHub(
  { api, file }: ReachedHub,
  range: string,
  pools: readonly IpPool[],
  cluster: string | undefined,
): Promise<HubAnswer> {
  const about = `AddressRange "${range}", asked with ${file}`;
  try {
    const found = await readShared(api, range);
    const { reason, text } = problemAt(found, pools, cluster) ?? { reason: "" };
    return reason === ""
      ? { reason }
      : { reason, finding: blockProblem(reason, REMEDIES[reason])({ text: `${about}: ${text}` }) };
  } catch (error) {
    const reason = error instanceof SourceFailure ? error.reason : "Failed";
    const text = `${about}: ${describeOutage(reason, { range })}: ${messageOf(error)}`;
    return { reason, finding: blockProblem(reason, REMEDIES[reason])({ text }) };
  }
}

function problemAt({ range, members }: SharedRange, pools: readonly IpPool[], cluster: string | undefined) {
  const subnet = formatPrefix(range.spec.subnet);
  const other = pools.find(({ spec }) => formatPrefix(spec.subnet) !== subnet);
  if (other !== undefined) {
    const text = `IPPool "${other.name}" leases nothing: the range's subnet is ${subnet}, not ${formatPrefix(other.spec.subnet)}`;
    return { reason: "OtherSubnet", text };
  }
  const [told] = pools.flatMap(({ source }) => source?.report?.member || []);
  const known = members.find(({ status }) => status.cluster === cluster);
  const member = known ?? members.find(({ spec }) => spec.member === told);
  if (member === undefined && told === undefined) return undefined;
  if (member === undefined) return { reason: "NotMember", text: describeOutage("NotMember", { range: range.name }) };
  const { status, spec } = member;
  // Whether its token is the cluster's own only the cluster knows.
  const bar = barOf({ ...NO_LEASES.seal, token: status.token }, status, cluster ?? status.cluster);
  const isFull = Object.keys(status.blocks).length >= spec.maxBlocks;
  return problemOf({ bar, short: isFull ? "share" : undefined, blocks: {}, others: {} });
}
