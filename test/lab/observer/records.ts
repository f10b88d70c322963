/**
 * The records of addresses from now on. In a cluster as etcd has them: every write, also after etcd was away or was put
 * back to an older state. Without one as the agent lists them, several times a second. No more of an object is decoded
 * than the checker reads.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Etcd, type EtcdKey, openEtcd } from "../history/etcd.ts";
import type { AddressRecord } from "./segment-checker.ts";

const PREFIX = "/registry/ipam.vendor.io/ipallocations/";
const RANGE = { start: PREFIX, end: "/registry/ipam.vendor.io/ipallocations0" };
const PAUSE_MS = 50;
const POLL_MS = 200;

type OnRecord = (address: string, record: AddressRecord | undefined) => void;

/** Returns the end of the subscription. */
export type RecordSource = (onRecord: OnRecord) => Disposable;

/** `netnsPath`: where etcd's loopback is. Only the address space without a name is followed. */
export const etcdRecords =
  (etcdUrl: string, netnsPath?: string): RecordSource =>
  (onRecord) =>
    followEtcd(openEtcd(etcdUrl, netnsPath), onRecord);

function followEtcd(etcd: Etcd, onRecord: OnRecord): Disposable {
  const known = new Map<string, string>();
  let isClosed = false;
  const take = ({ key, value }: EtcdKey): void => {
    const address = value === undefined ? known.get(key) : addressOf(value);
    if (address === undefined) return;
    if (value === undefined) known.delete(key);
    else known.set(key, address);
    onRecord(address, value === undefined ? undefined : decodeRecord(value));
  };
  const follow = async (): Promise<void> => {
    while (!isClosed) {
      try {
        const { revision, keys } = await etcd.read(RANGE);
        const found = new Set(keys.map(({ key }) => key));
        for (const key of [...known.keys()]) if (!found.has(key)) take({ key, revision, value: undefined });
        for (const each of keys) take(each);
        await etcd.watch(RANGE, revision + 1, take);
      } catch {
        // etcd is away, or has compacted the next revision: everything is read again.
      }
      if (!isClosed) await sleep(PAUSE_MS);
    }
  };
  void follow();
  return {
    [Symbol.dispose]: () => {
      isClosed = true;
      etcd.close();
    },
  };
}

/** An address in the answer to `GET /v1/allocations`. */
interface ListedAddress {
  readonly address: string;
  readonly state: string;
  readonly owner?: string;
  readonly namespace: string;
  readonly pod: string;
  readonly interface: string;
}

/** `list` may fail: without an agent nothing changes. */
export const agentRecords =
  (list: () => Promise<readonly ListedAddress[]>): RecordSource =>
  (onRecord) => {
    let known = new Set<string>();
    const poll = async (): Promise<void> => {
      const all = await list();
      const found = new Set(all.map(({ address }) => address));
      for (const address of known) if (!found.has(address)) onRecord(address, undefined);
      for (const { address, state, owner = "", namespace, pod, interface: ifName } of all)
        onRecord(address, { state, holders: [owner], text: `${namespace}/${pod} (${owner}) ${ifName}` });
      known = found;
    };
    const timer = setInterval(() => void poll().catch(() => {}), POLL_MS);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  };

interface StoredObject {
  readonly spec: {
    readonly address: string;
    readonly addressSpace?: string;
    readonly state: string;
    readonly node?: string;
    readonly holders?: readonly { namespace: string; pod: string; podUID: string; interface: string; node: string }[];
    readonly quarantine?: { readonly reason: string };
  };
}

function addressOf(value: string): string | undefined {
  const { address, addressSpace = "" } = (JSON.parse(value) as StoredObject).spec;
  return addressSpace === "" ? address : undefined;
}

function decodeRecord(value: string): AddressRecord {
  const { state, node = "", holders = [], quarantine } = (JSON.parse(value) as StoredObject).spec;
  const texts = holders.map(
    (each) => `${each.namespace}/${each.pod} (${each.podUID}) ${each.interface} on ${each.node}`,
  );
  const reason = quarantine === undefined ? [] : [quarantine.reason];
  const text = [`by ${node}`, ...reason, ...texts].join(", ");
  return { state, holders: holders.map(({ podUID }) => podUID), text };
}
