/**
 * The history of all IPPools and Subnets as etcd has it, each revision of it, put before the checker.
 *
 *   const pools = await followPools(plane.etcdUrl);
 *   await pools.caughtUp();                            // all writes up to now are checked
 *   pools.checker.breaches
 *
 * Effects: connections to etcd; a key beside the API server's.
 */
import { decodeIpPool } from "../../../host/resources/ip-pool.ts";
import { decodeAssignments, decodeSubnet } from "../../../host/resources/subnet.ts";
import { type EtcdKey, openEtcd } from "./etcd.ts";
import { type CheckedSubnet, PoolChecker } from "./pool-checker.ts";
import { openStream } from "./stream.ts";

export interface PoolHistory {
  readonly checker: PoolChecker;
  /** Resolves when everything that was written before the call has been checked. Throws when etcd does not let it. */
  caughtUp(): Promise<void>;
  close(): void;
}

const GROUP = "/registry/ipam.vendor.io/";
/** The first key behind those of Subnets. */
const MARK = `${GROUP}subnets0`;
const RANGE = { start: `${GROUP}ippools/`, end: `${MARK}\0` };

/** From now on; what is there already is checked as if it came now. `netnsPath`: where etcd's loopback is. */
export async function followPools(etcdUrl: string, netnsPath?: string): Promise<PoolHistory> {
  const etcd = openEtcd(etcdUrl, netnsPath);
  const checker = new PoolChecker();
  const onKey = (key: EtcdKey): void => {
    try {
      pass(checker, key);
    } catch (error) {
      checker.report(`${key.key} cannot be read at revision ${key.revision}: ${String(error)}`);
    }
  };
  const { revision, keys } = await etcd.read(RANGE);
  for (const key of keys.filter(({ key }) => key !== MARK)) onKey(key);
  const stream = openStream(etcd, {
    ...{ range: RANGE, markKey: MARK, fromRevision: revision + 1 },
    onKey,
    onFailure: (error) => checker.report(`The history is not whole: ${String(error)}`),
  });
  return {
    checker,
    caughtUp: () => stream.mark(),
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
function pass(checker: PoolChecker, key: EtcdKey): void {
  const { collection, name } = placeOf(key);
  const { revision, value } = key;
  const stored = value === undefined ? undefined : JSON.parse(value);
  const source = `etcd, ${collection} ${name}`;
  if (collection === "ippools") {
    checker.writtenPool({ name, revision, object: stored === undefined ? undefined : decodeIpPool(stored, source) });
  } else if (collection === "subnets") {
    checker.writtenSubnet({ name, revision, object: stored === undefined ? undefined : subnetOf(stored, source) });
  }
}

function subnetOf(stored: { readonly status?: unknown }, source: string): CheckedSubnet {
  return { ...decodeSubnet(stored, source), assignments: decodeAssignments(stored.status, source) };
}
