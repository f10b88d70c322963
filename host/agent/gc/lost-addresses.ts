/**
 * Addresses that pods of this node have and that the API server records for another pod (recreate). Nothing is
 * deleted and nothing is silent: a person has to delete one of the two pods.
 */
import type { Events } from "../../kubernetes/events.ts";
import type { Log } from "../../lib/log.ts";
import { formatIp } from "../../net/ip.ts";
import type { Allocation, Attachment, Registry } from "../../registry/registry.ts";

interface LostAddressesDeps {
  readonly events: Pick<Events, "emit">;
  readonly log: Log;
}

interface Lost {
  readonly row: Allocation;
  /** For the node's log. */
  readonly text: string;
  /** For the pod's owner. */
  readonly brief: string;
}

export class LostAddresses {
  readonly #deps: LostAddressesDeps;
  readonly #lost = new Map<string, Lost>();
  /** Number of addresses reported since the agent started. */
  count = 0;

  constructor(deps: LostAddressesDeps) {
    this.#deps = deps;
  }

  /** Sentences without a full stop. */
  get problems(): readonly string[] {
    return [...this.#lost.values()].map(({ text }) => text);
  }

  /** The registry's `onLost`. Logs each loss once, and emits an event of the pod. */
  report(row: Allocation, by: Allocation): void {
    const key = keyOf(row);
    const holder = describeHolder(by);
    const text = describeLoss(row, holder);
    const brief = describeLoss(row, describeHolderBriefly(row, by));
    if (this.#lost.get(key)?.text === text) return;
    this.#lost.set(key, { row, text, brief });
    this.count++;
    const { namespace, pod, owner, ifName, pool } = row;
    this.#deps.log.error({ address: formatIp(row.ip), pool, namespace, pod, owner, ifName, by: holder }, text);
    this.#deps.events.emit({
      regarding: { kind: "Pod", apiVersion: "v1", namespace, name: pod, uid: owner },
      type: "Warning",
      reason: "AddressLost",
      action: "Allocate",
      note: brief,
    });
  }

  /** Returns why CHECK of the attachment must fail; undefined when it has lost no address. */
  find({ containerId, ifName, network }: Attachment): string | undefined {
    const isOf = ({ row }: Lost): boolean =>
      row.containerId === containerId && row.ifName === ifName && (network === undefined || row.network === network);
    return [...this.#lost.values()].find(isOf)?.brief;
  }

  /** Returns whether the row's pod is known to have lost the address. */
  has(row: Allocation): boolean {
    const lost = this.#lost.get(keyOf(row))?.row;
    return lost?.owner === row.owner && lost.ifName === row.ifName;
  }

  /** Forgets the addresses that their pods have released, and those that are theirs again. */
  async prune(registry: Pick<Registry, "findAddress">, isOurs: (row: Allocation) => boolean): Promise<void> {
    for (const [key, lost] of this.#lost) {
      const { row } = lost;
      const now = await registry.findAddress(row.space, row.ip);
      const isHeld = now?.state === "Bound" && now.owner === row.owner && now.ifName === row.ifName;
      if (!isHeld || isOurs(now)) this.#lost.delete(key);
      else if (now.containerId !== row.containerId) this.#lost.set(key, { ...lost, row: now });
    }
  }
}

function keyOf({ space, ip }: Allocation): string {
  return `${formatIp(ip)}/${space}`;
}

function describeLoss(row: Allocation, holder: string): string {
  const { ip, pool, namespace, pod, ifName } = row;
  const address = `Address ${formatIp(ip)} of pool "${pool}", which pod ${namespace}/${pod} has on interface "${ifName}"`;
  return `${address}, is recorded for ${holder} in the API server; delete one of the two pods`;
}

function describeHolder({ state, namespace, pod, owner }: Allocation): string {
  return pod === "" ? `no pod (${state})` : `pod ${namespace}/${pod} (UID ${owner})`;
}

/** Without a UID, which is all that a forged owner reference needs, and without the name of another namespace's pod. */
function describeHolderBriefly(row: Allocation, by: Allocation): string {
  if (by.pod === "") return describeHolder(by);
  return by.namespace === row.namespace ? `pod ${by.namespace}/${by.pod}` : "a pod of another namespace";
}
