/**
 * Addresses that pods of this node have and that belong to somebody else in the API server (allocation rule 5): nothing is deleted, and
 * nothing is silent. A person has to end one of the two.
 * Effects: an event on the pod, a line in the log.
 */
import type { Events } from "../../kubernetes/events.ts";
import type { Log } from "../../lib/log.ts";
import { formatIp } from "../../net/ip.ts";
import type { Allocation, Attachment, Registry } from "../../registry/registry.ts";

export interface LostAddressesTools {
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
  readonly #tools: LostAddressesTools;
  readonly #lost = new Map<string, Lost>();
  #count = 0;

  constructor(tools: LostAddressesTools) {
    this.#tools = tools;
  }

  /** Each a sentence without its end. */
  get problems(): readonly string[] {
    return [...this.#lost.values()].map(({ text }) => text);
  }

  /** How many were found out since the agent started. */
  get count(): number {
    return this.#count;
  }

  /** The registry's `onLost`: told again of the same it says nothing. */
  note(row: Allocation, by: Allocation): void {
    const key = keyOf(row);
    const text = describeLoss(row, whoHas(by));
    const brief = describeLoss(row, whoHasBriefly(row, by));
    if (this.#lost.get(key)?.text === text) return;
    this.#lost.set(key, { row, text, brief });
    this.#count++;
    const { namespace, pod, owner, ifName, pool } = row;
    this.#tools.log.error({ address: formatIp(row.ip), pool, namespace, pod, owner, ifName, by: whoHas(by) }, text);
    this.#tools.events.emit({
      regarding: { kind: "Pod", apiVersion: "v1", namespace, name: pod, uid: owner },
      ...{ type: "Warning", reason: "AddressLost", action: "Allocate", note: brief },
    });
  }

  /** Why CHECK of the attachment must fail; undefined when it has lost nothing. */
  find({ containerId, ifName, network }: Attachment): string | undefined {
    const isOf = ({ row }: Lost): boolean =>
      row.containerId === containerId && row.ifName === ifName && (network === undefined || row.network === network);
    return [...this.#lost.values()].find(isOf)?.brief;
  }

  /** Whether the row's pod has lost its address, as far as is known. */
  has(row: Allocation): boolean {
    const lost = this.#lost.get(keyOf(row))?.row;
    return lost?.owner === row.owner && lost.ifName === row.ifName;
  }

  /** Forgets those whose pods have let go of them, and those that are theirs again. */
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
  const what = `Address ${formatIp(ip)} of pool "${pool}", which pod ${namespace}/${pod} has on interface "${ifName}"`;
  return `${what}, is recorded for ${holder} in the API server; delete one of the two`;
}

function whoHas({ state, namespace, pod, owner }: Allocation): string {
  return pod === "" ? `nobody (${state})` : `pod ${namespace}/${pod} (UID ${owner})`;
}

/** Neither a UID, which is all that a forged owner reference needs, nor the name of another namespace's pod. */
function whoHasBriefly(row: Allocation, by: Allocation): string {
  if (by.pod === "") return whoHas(by);
  return by.namespace === row.namespace ? `pod ${by.namespace}/${by.pod}` : "a pod of another namespace";
}
