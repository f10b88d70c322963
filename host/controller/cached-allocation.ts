/**
 * Allocations as the controller caches all of them: only the fields that its parts decide by, packed, because a large
 * cluster has hundreds of thousands. Before a write, the whole object is read from the API server.
 */

import { hashText } from "../ipam/pick.ts";
import type { KubeObject } from "../kubernetes/kube-api.ts";
import { SharedTexts, SharedValues } from "../lib/shared-values.ts";
import type { Ip } from "../net/ip.ts";
import {
  decodeIpAllocation,
  FORCE_DELETE,
  type Holder,
  type IpAllocation,
  type IpAllocationSpec,
  isMachines,
} from "../resources/ip-allocation.ts";
import type { Workload } from "../resources/member.ts";

export interface CachedHolder extends Pick<Holder, "namespace" | "pod" | "ifName" | "node" | "machine"> {
  /** {@link hashUid} of the pod. A whole holder has the UID itself. */
  readonly uidHash?: number;
}

/** Returns 32 bits that distinguish pods of one name, as a number that V8 stores in place of a pointer. */
export function hashUid(uid: string): number {
  return hashText(uid) | 0;
}

type Quarantine = NonNullable<IpAllocationSpec["quarantine"]>;

/** The fields that a whole {@link IpAllocation} has as well. */
export interface CachedAllocation extends Pick<IpAllocation, "name" | "deleting"> {
  /** A user wants to delete it although it is in use: {@link FORCE_DELETE}. */
  readonly isForced?: boolean;
  readonly spec: Pick<
    IpAllocationSpec,
    "ip" | "addressSpace" | "prefixLength" | "pool" | "routers" | "state" | "node" | "workload" | "number"
  > & {
    readonly holders: readonly CachedHolder[];
    readonly quarantine?:
      | (Pick<Quarantine, "reason" | "mac"> & { readonly holder?: CachedHolder | undefined })
      | undefined;
  };
}

type CachedSpec = CachedAllocation["spec"];

/**
 * Returns the namespace for which the address counts, and the pod that proves it, if it exists: an agent may name any.
 * Undefined for a cooling address, and a Service's. Both holders of a migrating machine are in one namespace.
 */
export function countedFor({ spec }: Pick<CachedAllocation, "spec">) {
  if (isMachines(spec)) return undefined;
  const { holders, workload, quarantine } = spec;
  const { namespace = workload?.namespace, pod } = holders[0] ?? quarantine?.holder ?? {};
  return namespace ? { namespace, pod } : undefined;
}

/** The fields that very many allocations share. */
interface Frame extends Pick<CachedSpec, "addressSpace" | "prefixLength" | "pool" | "routers" | "state"> {
  readonly deleting: boolean;
  readonly isForced: boolean;
  /** Interface of the only holder, "" if there is none. */
  readonly ifName: string;
}

/** A node, and for a plain allocation its machine. */
type Place = Pick<Holder, "node" | "machine">;

/** The fields of few allocations. */
interface Rest extends Pick<CachedSpec, "workload" | "number" | "quarantine"> {
  /** If undefined, the only holder is the pod in the record itself. */
  readonly holders: CachedSpec["holders"] | undefined;
}

type DecodedAllocation = Pick<IpAllocation, "name" | "deleting" | "spec"> & {
  readonly isForced: boolean;
};

/** Some 100 bytes besides its own texts, which are the names of address and pod. */
class PackedAllocation implements CachedAllocation {
  readonly name: string;
  /** An IPv4 address as a signed number of 32 bits, which V8 stores in place of a pointer. */
  readonly #ip: number | bigint;
  readonly #frame: Frame;
  readonly #place: Place;
  readonly #namespace: string;
  readonly #pod: string;
  readonly #uidHash: number;
  readonly #rest: Rest | undefined;

  constructor({ name, deleting, isForced, spec }: DecodedAllocation, shared: Shared) {
    const { ip, node, holders, workload, number, quarantine } = spec;
    const [holder] = holders;
    const isPlain = holder !== undefined && holders.length === 1 && holder.node === node;
    this.name = name;
    this.#ip = ip.family === 4 ? Number(ip.value) | 0 : ip.value;
    this.#frame = shared.frame(spec, { deleting, isForced, ifName: isPlain ? holder.ifName : "" });
    this.#place = shared.place({ node, machine: isPlain ? holder.machine : undefined });
    this.#namespace = isPlain ? shared.text(holder.namespace) : "";
    this.#pod = isPlain ? holder.pod : "";
    this.#uidHash = isPlain ? hashUid(holder.podUid) : 0;
    this.#rest =
      isPlain && workload === undefined && quarantine === undefined
        ? undefined
        : {
            holders: isPlain ? undefined : holders.map((each) => shared.holder(each)),
            workload: workload && shared.workload(workload, holder?.pod),
            number,
            quarantine: quarantine && shared.quarantine(quarantine),
          };
  }

  get deleting(): boolean {
    return this.#frame.deleting;
  }

  get isForced(): boolean {
    return this.#frame.isForced;
  }

  get spec(): CachedSpec {
    const { addressSpace, prefixLength, pool, routers, state, ifName } = this.#frame;
    const holder = { namespace: this.#namespace, pod: this.#pod, ifName, uidHash: this.#uidHash, ...this.#place };
    const { holders = [holder] } = this.#rest ?? {};
    const { workload, number, quarantine } = this.#rest ?? {};
    const place = { addressSpace, prefixLength, pool, routers, state, node: this.#place.node };
    return { ip: unpackIp(this.#ip), ...place, holders, workload, number, quarantine };
  }
}

function unpackIp(packed: number | bigint): Ip {
  return typeof packed === "number" ? { family: 4, value: BigInt(packed >>> 0) } : { family: 6, value: packed };
}

/** Equal texts and frames, which are stored once. */
class Shared {
  readonly #texts = new SharedTexts();
  readonly #frames = new SharedValues<Frame>();
  readonly #places = new SharedValues<Place>();

  text(text: string): string {
    return this.#texts.of(text);
  }

  frame(spec: CachedSpec, own: Pick<Frame, "deleting" | "isForced" | "ifName">): Frame {
    const { addressSpace, prefixLength, pool, routers, state } = spec;
    const key = [state, prefixLength, own.deleting, own.isForced, own.ifName, pool, addressSpace, routers ?? "-"].join(
      "/",
    );
    return this.#frames.of(key, () => ({ addressSpace, prefixLength, pool, routers, state, ...own }));
  }

  place({ node, machine }: Place): Place {
    return this.#places.of(`${node}/${machine ?? ""}`, () => (machine === undefined ? { node } : { node, machine }));
  }

  holder({ namespace, pod, podUid, ifName, ...place }: Holder): CachedHolder {
    const names = { namespace: this.text(namespace), pod, ifName: this.text(ifName), uidHash: hashUid(podUid) };
    return { ...names, ...this.place(place) };
  }

  /** `pod`: a member of a StatefulSet has its pod's name. */
  workload({ kind, namespace, name, uid, member, ifName }: Workload, pod: string | undefined): Workload {
    return {
      kind: this.text(kind),
      namespace: this.text(namespace),
      name: this.text(name),
      uid: this.text(uid),
      member: member === pod ? pod : member,
      ifName: ifName && this.text(ifName),
    };
  }

  quarantine({ reason, mac, holder }: NonNullable<IpAllocationSpec["quarantine"]>): CachedSpec["quarantine"] {
    return { reason, mac, holder: holder && this.holder(holder) };
  }
}

/** Returns a decoder with its own shared texts, which throws ConfigError. */
export function openCachedDecoder(): (object: KubeObject) => CachedAllocation {
  const shared = new Shared();
  return (object) => {
    const isForced = Object(Object(object.metadata).annotations)[FORCE_DELETE] === "true";
    return new PackedAllocation({ ...decodeIpAllocation(object, "API server"), isForced }, shared);
  };
}
