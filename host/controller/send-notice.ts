/** One notice to one agent (docs/decisions/0035): a write to its Node object. */
import { callIfThere, type KubeApi } from "../kubernetes/kube-api.ts";
import { NODES, objectPath } from "../kubernetes/paths.ts";
import { formatNotice, NOTICE_ANNOTATION } from "../resources/allocation-notice.ts";
import type { ControllerDeps } from "./types.ts";

interface NoticeTerms extends Pick<ControllerDeps, "clock"> {
  readonly api: Pick<KubeApi, "call">;
  readonly signal: AbortSignal;
}

/** `names`: of allocations. Returns false if there is no such node: later its agent compares everything. */
export async function sendNotice(
  { api, clock, signal }: NoticeTerms,
  node: string,
  names: readonly string[],
): Promise<boolean> {
  const annotations = { [NOTICE_ANNOTATION]: formatNotice(clock.now().toISOString(), names) };
  const path = objectPath(NODES, { name: node });
  return (await callIfThere(api, { method: "PATCH", path, body: { metadata: { annotations } }, signal })) !== undefined;
}
