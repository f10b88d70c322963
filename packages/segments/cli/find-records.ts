/** The obstacles to recording pods' addresses in the IPAM of record: the controller's events about them. */
import * as z from "zod";
import { listObjects } from "../../../host/cli/read-objects.ts";
import { warning } from "../../../host/findings/problem.ts";
import type { KubeApi } from "../../../host/kubernetes/kube-api.ts";
import { EVENTS } from "../../../host/kubernetes/paths.ts";
import type { Finding } from "../../../host/records/finding.ts";

/** The controller repeats an event that is still true within so long: milliseconds. */
const FRESH_MS = 900_000;

/** Namespace of events about objects without one. */
const NAMESPACE = "default";

const event = z.object({
  regarding: z.object({ kind: z.string(), name: z.string().optional() }),
  note: z.string(),
  eventTime: z.string(),
  series: z.object({ lastObservedTime: z.string() }).nullish(),
});

export const RECORD_PROBLEM = warning(
  "AddressNotRecorded",
  "{text}",
  "See docs/runbooks.md, BerthRecordsBehind and BerthRecordsForeign",
);

/** Returns a finding for each address; none if the user may not list events. */
export async function findRecords(api: KubeApi, nowMs: number): Promise<readonly Finding[]> {
  const query = { fieldSelector: "reason=AddressNotRecorded" };
  const found = await listObjects(api, { resource: EVENTS, namespace: NAMESPACE, query }).catch(() => []);
  return [...new Set(found.flatMap((item) => clauseOf(item, nowMs)))].sort().map((text) => RECORD_PROBLEM({ text }));
}

function clauseOf(item: unknown, nowMs: number): readonly string[] {
  const { data } = event.safeParse(item);
  if (data === undefined) return [];
  const { regarding, note, eventTime, series } = data;
  if (nowMs - Date.parse(series?.lastObservedTime ?? eventTime) > FRESH_MS) return [];
  return [regarding.kind === "IPAllocation" ? `${regarding.name ?? ""}: ${note}` : note];
}
