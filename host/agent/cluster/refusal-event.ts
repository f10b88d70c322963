/** A refused ADD as an event of its pod, so that `kubectl describe pod` shows the error that the runtime received. */
import { ErrorCode } from "../../cni/error.ts";
import type { KubeEvent } from "../../kubernetes/events.ts";
import type { PodIdentity } from "../ipam/pod-identity.ts";
import { toCniError } from "../server/answer.ts";

export function refusalEvent({ namespace, name, owner }: PodIdentity, error: unknown): KubeEvent {
  const { code, message } = toCniError(error);
  const reason = Object.entries(ErrorCode).find(([, known]) => known === code)?.[0] ?? "Refused";
  return {
    regarding: { kind: "Pod", apiVersion: "v1", namespace, name, uid: owner },
    reason,
    note: message,
    type: "Warning",
    action: "Allocate",
  };
}
