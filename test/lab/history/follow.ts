/**
 * The history of all IPAllocations as etcd has it, each revision of it, put before the checker.
 *
 *   const history = await followHistory(plane.etcdUrl, { minReuseMs: 2_000 });
 *   await history.attached({ name: "10.6.0.21", podUid, ifName: "eth0" });   // at once after the answer of the ADD
 *   history.leaving({ name: "10.6.0.21", podUid, ifName: "eth0" });          // before the DEL
 *   await history.caughtUp();                                                 // all writes up to now are checked
 *   history.checker.breaches
 *
 * It reads etcd and not the API server, whose watch may omit what came and went between two reads. "The object was
 * Bound before the ADD was answered" is tested to within the time of one write of etcd (stream.ts).
 * Effects: connections to etcd; a key beside the API server's.
 */
import { parseIp } from "../../../host/net/ip.ts";
import { allocationName, decodeIpAllocation } from "../../../host/resources/ip-allocation.ts";
import { AllocationChecker, type Attachment, type CheckerOptions } from "./allocation-checker.ts";
import { type EtcdKey, openEtcd } from "./etcd.ts";
import { openStream } from "./stream.ts";

/** Before the names of the objects. */
export const ALLOCATIONS = "/registry/ipam.vendor.io/ipallocations/";
/** The first key behind those with the prefix. */
const MARK = "/registry/ipam.vendor.io/ipallocations0";
const RANGE = { start: ALLOCATIONS, end: `${MARK}\0` };

export interface HistoryOptions extends CheckerOptions {
  /** Where etcd's loopback is; default: this process's own namespace. */
  readonly netnsPath?: string;
}

export interface History {
  readonly checker: AllocationChecker;
  /** An ADD has been answered with the address. Resolves when that place of the history has been checked. */
  attached(attachment: Attachment): Promise<void>;
  /** Its DEL is about to be called. */
  leaving(attachment: Attachment): void;
  /** Resolves when everything that was written before the call has been checked. Throws when etcd does not let it. */
  caughtUp(): Promise<void>;
  close(): void;
}

/** An address that an ADD of the pod's eth0 has answered. `identity`: whose it stays after the pod. */
export function attachmentOf(address: string, podUid: string, identity?: string): Attachment {
  const ip = parseIp(address);
  if (ip === undefined) throw new TypeError(`"${address}" is not an address`);
  return { name: allocationName(ip, ""), podUid, ifName: "eth0", identity };
}

/** From now on; what is there already is the checker's starting point. */
export async function followHistory(etcdUrl: string, options: HistoryOptions = {}): Promise<History> {
  const etcd = openEtcd(etcdUrl, options.netnsPath);
  const checker = new AllocationChecker(options);
  const { revision, keys } = await etcd.read(RANGE);
  for (const key of keys.filter(({ key }) => key !== MARK)) checker.begin(writeOf(key));
  const stream = openStream(etcd, {
    ...{ range: RANGE, markKey: MARK, fromRevision: revision + 1 },
    onKey: (key) => checker.written(writeOf(key)),
    onFailure: (error) => checker.report(`The history is not whole: ${String(error)}`),
  });
  return {
    checker,
    attached: async (attachment) => {
      checker.answered(attachment, performance.now());
      await stream.mark();
      checker.mustHold(attachment);
    },
    leaving: (attachment) => checker.leaving(attachment, performance.now()),
    caughtUp: () => stream.mark(),
    close: () => {
      stream.close();
      etcd.close();
    },
  };
}

/** The API server stores its own kinds' objects as JSON; the revision is in the key's place, not in the object. */
function writeOf({ key, revision, value }: EtcdKey): Parameters<AllocationChecker["written"]>[0] {
  const name = key.slice(ALLOCATIONS.length);
  if (value === undefined) return { name, revision, object: undefined };
  const stored = JSON.parse(value) as { metadata: object };
  const object = { ...stored, metadata: { ...stored.metadata, resourceVersion: `${revision}` } };
  return { name, revision, object: decodeIpAllocation(object, `etcd, ${name}`) };
}
