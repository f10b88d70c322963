/**
 * The history of all IPPools and Subnets as etcd has it, each revision of it, put before the judge; and what was written of each kind.
 *
 *   const pools = await followPools(plane.etcdUrl);
 *   await pools.settled();                            // all writes up to now are judged
 *   pools.judge.breaches
 *   pools.writes.get("subnets")                       // { count, bytes }
 *
 * Effects: connections to etcd; a key beside the API server's.
 */
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { decodeAssignments, decodeSubnet } from "../../../host/resources/subnet.ts";
import { type EtcdKey, openEtcd } from "./etcd.ts";
import { type JudgedSubnet, PoolJudge } from "./pool-judge.ts";
import { openStream } from "./stream.ts";

export interface PoolWrites {
  readonly count: number;
  /** Of the objects, as they were written; of a deletion none. */
  readonly bytes: number;
}

export interface PoolHistory {
  readonly judge: PoolJudge;
  /** By the collection's name: `ippools`, `ippoolusages`, `subnets`. */
  readonly writes: ReadonlyMap<string, PoolWrites>;
  /** Resolves when everything that was written before the call has been judged. Throws when etcd does not let it. */
  settled(): Promise<void>;
  close(): void;
}

const GROUP = "/registry/ipam.vendor.io/";
/** The first key behind those of Subnets. */
const MARK = `${GROUP}subnets0`;
const RANGE = { start: `${GROUP}ippools/`, end: `${MARK}\0` };

/** From now on; what is there already is judged as if it came now. `netnsPath`: where etcd's loopback is. */
export async function followPools(etcdUrl: string, netnsPath?: string): Promise<PoolHistory> {
  const etcd = openEtcd(etcdUrl, netnsPath);
  const judge = new PoolJudge();
  const writes = new Map<string, PoolWrites>();
  const onKey = (key: EtcdKey): void => {
    try {
      tell(judge, key);
    } catch (error) {
      judge.report(`${key.key} cannot be read at revision ${key.revision}: ${String(error)}`);
    }
  };
  const { revision, keys } = await etcd.read(RANGE);
  for (const key of keys.filter(({ key }) => key !== MARK)) onKey(key);
  const stream = openStream(etcd, {
    ...{ range: RANGE, markKey: MARK, fromRevision: revision + 1 },
    onKey: (key) => {
      const { collection } = placeOf(key);
      const { count, bytes } = writes.get(collection) ?? { count: 0, bytes: 0 };
      writes.set(collection, { count: count + 1, bytes: bytes + (key.value?.length ?? 0) });
      onKey(key);
    },
    onFailure: (error) => judge.report(`The history is not whole: ${String(error)}`),
  });
  return {
    ...{ judge, writes },
    settled: () => stream.mark(),
    close: () => {
      stream.close();
      etcd.close();
    },
  };
}

function placeOf({ key }: EtcdKey): { readonly collection: string; readonly name: string } {
  const [collection = "", name = ""] = key.slice(GROUP.length).split("/");
  return { collection, name };
}

/** Other kinds lie between the two. */
function tell(judge: PoolJudge, key: EtcdKey): void {
  const { collection, name } = placeOf(key);
  const { revision, value } = key;
  const stored = value === undefined ? undefined : JSON.parse(value);
  const source = `etcd, ${collection} ${name}`;
  if (collection === "ippools") {
    judge.writtenPool({ name, revision, object: stored === undefined ? undefined : decodeIpPool(stored, source) });
  } else if (collection === "subnets") {
    judge.writtenSubnet({ name, revision, object: stored === undefined ? undefined : subnetOf(stored, source) });
  }
}

function subnetOf(stored: { readonly status?: unknown }, source: string): JudgedSubnet {
  return { ...decodeSubnet(stored, source), assignments: decodeAssignments(stored.status, source) };
}
