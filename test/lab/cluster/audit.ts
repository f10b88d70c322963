/**
 * Faults of a cluster at one moment, as sentences: the two invariants of docs/develop/allocation.md, derived from the
 * API server's objects and from the runtimes' answers.
 */
import type { KubeObject } from "../kube-client.ts";
import { type Attachment, describe } from "./ledger.ts";

export interface AuditFacts {
  readonly allocations: readonly KubeObject[];
  readonly pods: readonly KubeObject[];
  readonly live: readonly Attachment[];
  /** Breaches that the ledger wrote down. */
  readonly breaches: readonly string[];
  /**
   * Addresses that cool by the journal of the node that had them: in a large pool the API server is told only when
   * that is over.
   */
  readonly cooling?: ReadonlySet<string>;
}

/** Empty: nothing is wrong. A Cooling object is right; so is one of a pod that has no NIC yet. */
export function audit(facts: AuditFacts): string[] {
  return [...facts.breaches, ...facts.live.flatMap((each) => auditLive(each, facts)), ...auditObjects(facts)];
}

/** Every live address is Bound to its pod, once. */
function auditLive(attachment: Attachment, { allocations, live }: AuditFacts): string[] {
  const { pod, ifName, addresses } = attachment;
  return addresses.flatMap((address) => {
    const wearers = live.filter((each) => each.addresses.includes(address) && each.pod.uid !== pod.uid);
    const twice = wearers.map((other) => `${address} is live at ${describe(attachment)} and at ${describe(other)}`);
    const object = allocations.find(({ spec }) => spec.address === address);
    if (object === undefined) return [...twice, `${address} is live at ${describe(attachment)} and has no object`];
    if (object.spec.state !== "Bound")
      return [...twice, `${address} is live at ${describe(attachment)} and its object is ${object.spec.state}`];
    const holders: KubeObject[] = object.spec.holders ?? [];
    const isHeld = holders.some((holder) => holder.podUID === pod.uid && holder.interface === ifName);
    if (isHeld) return twice;
    return [...twice, `${address} is live at ${describe(attachment)} and its object belongs to ${names(holders)}`];
  });
}

/** Every object is explained. */
function auditObjects({ allocations, pods, live, cooling = new Set() }: AuditFacts): string[] {
  const byUid = new Map(pods.map((pod) => [pod.metadata.uid, pod]));
  return allocations.flatMap(({ metadata, spec }) => {
    const { address, state, holders = [] } = spec;
    const wrong = [];
    if (!isNameOf(metadata.name, spec)) wrong.push(`The object ${metadata.name} is for the address ${address}`);
    if (state === "Bound" && holders.length === 0) wrong.push(`${address} is Bound without a holder`);
    if (state === "Kept" && spec.workload === undefined) wrong.push(`${address} is Kept without a workload`);
    if (state === "Quarantined" && spec.quarantine === undefined)
      wrong.push(`${address} is Quarantined without a reason`);
    if (state !== "Bound" || cooling.has(address)) return wrong;
    for (const holder of holders) {
      const pod = byUid.get(holder.podUID);
      const whose = `${address} is Bound to ${names([holder])}`;
      if (pod === undefined) wrong.push(`${whose}, which is gone`);
      else if (pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed")
        wrong.push(`${whose}, which has finished`);
      else if (pod.spec.nodeName !== holder.node) wrong.push(`${whose}, which is on ${pod.spec.nodeName}`);
      const nic = live.find((each) => each.pod.uid === holder.podUID && each.ifName === holder.interface);
      if (nic !== undefined && !nic.addresses.includes(address))
        wrong.push(`${whose}, which has ${nic.addresses.join(" and ")} instead`);
    }
    return wrong;
  });
}

function names(holders: readonly KubeObject[]): string {
  const texts = holders.map(
    ({ namespace, pod, podUID, interface: ifName, node }) =>
      `${namespace}/${pod} (${podUID.slice(0, 8)}, ${ifName}) on ${node}`,
  );
  return texts.length === 0 ? "no pod" : texts.join(" and ");
}

/** IPv6 is written out with dashes; a named space follows a dot. */
function isNameOf(name: string, { address, addressSpace = "" }: KubeObject): boolean {
  const own = addressSpace === "" ? name : name.slice(0, -addressSpace.length - 1);
  return own === address || own.includes("-");
}
