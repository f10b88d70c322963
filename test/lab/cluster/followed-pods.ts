/**
 * Pods whose ADDs and DELs, at agents in this process, are compared with the history of all addresses
 * (history/follow.ts).
 */
import type { Attachment } from "../history/allocation-checker.ts";
import { attachmentOf, type History } from "../history/follow.ts";
import type { LabPod } from "./objects.ts";
import type { World } from "./world.ts";

/** A pod with its addresses. */
export interface AttachedPod {
  readonly pod: LabPod;
  readonly attachments: readonly Attachment[];
  /** Resolves when the history has come to the place of the answer. */
  readonly checked: Promise<unknown>;
}

/**
 * The ADD of its NIC. `identity`: whose the address stays after the pod. Rejects with what the agent refuses it with.
 */
export async function attachPod(world: World, history: History, pod: LabPod, identity?: string): Promise<AttachedPod> {
  const { ips } = await world.agent(pod.node).add(pod);
  const attachments = ips.map((ip) => attachmentOf(ip, pod.uid, identity));
  const checked = Promise.all(attachments.map((attachment) => history.attached(attachment)));
  return { pod, attachments, checked };
}

/** The DEL of its NIC, and the end of its object. */
export async function endPod(world: World, history: History, { pod, attachments, checked }: AttachedPod) {
  await checked;
  for (const attachment of attachments) history.leaving(attachment);
  await world.endPod(pod);
}
