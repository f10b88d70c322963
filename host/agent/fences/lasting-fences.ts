/**
 * Released attachments whose network namespace is still there: a main plugin that is slow may give the NIC its address
 * after that was taken off, or released. Such an address is taken off again. In memory; a new agent reads of the
 * cooling addresses in its journal.
 */
import type { Log } from "../../lib/log.ts";
import { PeriodicWorker } from "../../lib/periodic.ts";
import { formatIp } from "../../net/ip.ts";
import type { Allocation, Attachment, Registry } from "../../registry/registry.ts";
import type { NicAccess } from "./orphan-nics.ts";

/** A main plugin's DEL calls IPAM first, and needs the NIC with its addresses then: milliseconds. */
const DEL_MS = 5_000;
/** Interval of the looks at an attachment: milliseconds. */
const LOOK_MS = 200;
/** Time after which looks are rare, and their interval then: milliseconds. */
const OFTEN_MS = 120_000;
const SELDOM_MS = 5_000;

interface Remembered {
  /** With the namespace that it was in. */
  readonly row: Allocation & { readonly netns: string; readonly netnsCookie: bigint };
  readonly sinceMs: number;
  nextMs: number;
}

interface LastingFencesDeps {
  readonly nics: NicAccess;
  readonly registry: Pick<Registry, "findAddress">;
  readonly isEnabled: () => boolean;
  /** The machine's monotonic clock. */
  readonly nowMs: () => number;
  readonly log: Log;
}

export class LastingFences {
  readonly #deps: LastingFencesDeps;
  readonly #remembered = new Map<string, Remembered>();
  readonly #worker: PeriodicWorker;

  constructor(deps: LastingFencesDeps) {
    this.#deps = deps;
    this.#worker = new PeriodicWorker({
      failure: "Looking at the NICs of released attachments failed",
      work: async () => {
        await this.#look();
        return this.#remembered.size > 0 ? LOOK_MS : undefined;
      },
      retryMs: () => SELDOM_MS,
      log: deps.log,
    });
  }

  /** The address was taken off the orphan's NIC. Without a cookie its namespace would not be known again. */
  fenced(row: Allocation): void {
    this.#remember(row, 0);
  }

  /** Its DEL was answered, maybe before this agent started. */
  released(row: Allocation): void {
    this.#remember(row, DEL_MS);
  }

  #remember(row: Allocation, afterMs: number): void {
    const { netns, netnsCookie } = row;
    if (netns === undefined || netnsCookie === undefined) return;
    const nowMs = this.#deps.nowMs();
    const key = `${formatIp(row.ip)}/${row.space} ${row.netnsCookie}`;
    this.#remembered.set(key, { row: { ...row, netns, netnsCookie }, sinceMs: nowMs, nextMs: nowMs + afterMs });
    this.#worker.wake();
  }

  /** An ADD of the attachment begins: its container is used again. */
  attaching(attachment: Attachment): void {
    for (const [key, each] of this.#remembered) if (isOf(each, attachment)) this.#remembered.delete(key);
  }

  /** Returns whether the attachment's addresses were released, and its namespace was still there at the last look. */
  has(attachment: Attachment): boolean {
    return this.#remembered.values().some((each) => isOf(each, attachment));
  }

  close(): Promise<void> {
    return this.#worker.close();
  }

  async #look(): Promise<void> {
    const { nowMs } = this.#deps;
    for (const [key, each] of [...this.#remembered]) {
      if (each.nextMs > nowMs()) continue;
      each.nextMs = nowMs() + (nowMs() - each.sinceMs < OFTEN_MS ? LOOK_MS : SELDOM_MS);
      if ((await this.#isOver(each)) && this.#remembered.get(key) === each) this.#remembered.delete(key);
    }
  }

  /** Returns whether the namespace is gone, or has the address again by right. */
  async #isOver({ row }: Remembered): Promise<boolean> {
    const { nics, registry, isEnabled, log } = this.#deps;
    const { space, ip, netns, netnsCookie, namespace, pod, owner, ifName } = row;
    // Another path that leads there is not looked for: most namespaces are gone with their path.
    if (nics.readCookie(netns) !== netnsCookie) return true;
    if ((await nics.readNetnsStatus(row)) !== "inUse") return false;
    const now = await registry.findAddress(space, ip);
    if (now?.state === "Bound" && (now.netnsCookie === netnsCookie || now.owner === owner)) return true;
    if (!isEnabled()) return false;
    const links = nics.fenceNics({ netns, netnsCookie, ips: [ip], hasMachine: false, isOrphan: false }) ?? [];
    if (links.length === 0) return false;
    const address = formatIp(ip);
    const text = `Address ${address} of pod ${namespace}/${pod} (UID ${owner}) came up after it was released; removed it and set ${links.map((link) => `"${link}"`).join(", ")} down`;
    log.info({ address, namespace, pod, owner, ifName, links }, text);
    return false;
  }
}

function isOf({ row }: Remembered, { containerId, ifName }: Attachment): boolean {
  return row.containerId === containerId && row.ifName === ifName;
}
