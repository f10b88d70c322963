/**
 * The records of addresses as etcd has them, from now on: every write, also after etcd was away or was put back to an
 * older state. It decodes no more of an object than the checker reads.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdKey, openEtcd } from "../history/etcd.ts";
import type { AddressRecord } from "./segment-checker.ts";

const PREFIX = "/registry/ipam.vendor.io/ipallocations/";
const RANGE = { start: PREFIX, end: "/registry/ipam.vendor.io/ipallocations0" };
const PAUSE_MS = 50;

export interface RecordSource {
  readonly etcdUrl: string;
  /** Where etcd's loopback is; default: this process's own namespace. */
  readonly netnsPath?: string | undefined;
}

type OnRecord = (address: string, record: AddressRecord | undefined) => void;

/** Returns what ends it. Only the address space without a name is followed. */
export function followRecords({ etcdUrl, netnsPath }: RecordSource, onRecord: OnRecord): Disposable {
  const etcd = openEtcd(etcdUrl, netnsPath);
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
        // It is away, or has compacted what came next: all is read again.
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
