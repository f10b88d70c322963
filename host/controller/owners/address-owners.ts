/**
 * The owners of retained addresses: StatefulSets, KubeVirt's machines, IPAMClaims, and objects of the kinds that
 * vendor-conf lists (docs/workloads.md). The watches only tell when an owner is worth checking; the check itself is a
 * GET.
 */

import * as z from "zod";
import { IPS_ANNOTATION } from "../../config/annotations.ts";
import { ConfigError } from "../../config/config-error.ts";
import type { RetainingKind } from "../../config/vendor-conf.ts";
import { requestedByClaim } from "../../ipam/retention.ts";
import { type KubeApi, type KubeObject, METADATA } from "../../kubernetes/kube-api.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { describeObject, keyOf } from "../../kubernetes/object-key.ts";
import { ADDRESS_OWNERS, collectionPath, type Resource } from "../../kubernetes/paths.ts";
import type { Reflector } from "../../kubernetes/reflector.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Log } from "../../lib/log.ts";
import type { ObjectBudget } from "../../lib/object-budget.ts";
import { formatIp } from "../../net/ip.ts";
import { listedKind, type Workload } from "../../resources/member.ts";
import { readAnnotations } from "../../resources/pod.ts";
import { decodeIpamClaim } from "../../resources/workloads/ipam-claim.ts";
import { decodeStatefulSet, hasMember } from "../../resources/workloads/stateful-set.ts";
import { decodeMachine } from "../../resources/workloads/virtual-machine.ts";
import { settingsOf } from "../caches.ts";
import { followObjects } from "../follow-objects.ts";
import type { AddressOwners, Caches, Liveness, NamingWorkload } from "../types.ts";
import { readLiveness, requireUid } from "./liveness.ts";

/** The state of an owner in its watch. */
interface AddressOwnerState {
  readonly uid: string;
  /** Changes whenever the owner retains, or names, other addresses than before. */
  readonly retains: string;
  readonly naming?: NamingWorkload | undefined;
}

interface AddressOwnerKind extends Resource {
  readonly kind: Workload["kind"];
  /** Berth reads nothing else of a kind that vendor-conf lists. */
  readonly metadataOnly?: boolean;
  /** The API server may not know the kind. */
  readonly isOptional: boolean;
  /** Throws ConfigError. */
  readonly read: (object: KubeObject, source: string) => AddressOwnerState;
  /** Whether the live object, which has the workload's UID, retains the member's addresses. Throws ConfigError. */
  readonly retains: (object: KubeObject, workload: Workload, source: string) => boolean;
}

const texts = z.record(z.string(), z.string()).catch({});
/** An invalid template must not end retention. */
const withTemplate = z.object({
  metadata: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
  spec: z.object({ template: z.object({ metadata: z.object({ labels: texts, annotations: texts }) }) }),
});

/** Returns undefined if the template names no addresses. */
function readNaming(
  object: KubeObject,
  kind: "StatefulSet" | "VirtualMachine",
  more: Pick<NamingWorkload, "ordinals"> = {},
): NamingWorkload | undefined {
  const { metadata, spec } = withTemplate.safeParse(object).data ?? {};
  const { labels = {}, annotations = {} } = spec?.template.metadata ?? {};
  if (metadata === undefined || annotations[IPS_ANNOTATION] === undefined) return undefined;
  const { apiVersion } = ADDRESS_OWNERS[kind];
  return { kind, apiVersion, ...metadata, labels, annotations: readAnnotations(annotations), ...more };
}

/** The requests of a claim that cannot be read are unknown: its addresses stay. */
function readClaim(object: KubeObject, source: string): AddressOwnerState {
  const uid = requireUid(object, source);
  const [namespace = "", name = ""] = keyOf(object).split("/");
  const { apiVersion } = ADDRESS_OWNERS.IPAMClaim;
  const of = { kind: "IPAMClaim", apiVersion, namespace, name, uid, labels: {}, annotations: {} };
  try {
    const claim = decodeIpamClaim(object, source);
    const requested = requestedByClaim(claim).flatMap((each) => (each.isPreference ? [] : formatIp(each.ip)));
    return stateOf(uid, requested.length === 0 ? undefined : { ...of, ifName: claim.ifName, requested });
  } catch (error) {
    if (error instanceof ConfigError) return stateOf(uid, { ...of, fault: error });
    throw error;
  }
}

const readUid: AddressOwnerKind["read"] = (object, source) => stateOf(requireUid(object, source));

const stateOf = (uid: string, naming?: NamingWorkload, ordinals = ""): AddressOwnerState => ({
  ...{ uid, naming },
  retains: naming === undefined ? ordinals : JSON.stringify(naming),
});

const ADDRESS_OWNER_KINDS: readonly AddressOwnerKind[] = [
  {
    kind: "StatefulSet",
    ...ADDRESS_OWNERS.StatefulSet,
    isOptional: false,
    read: (object, source) => {
      const { uid, ...ordinals } = decodeStatefulSet(object, source);
      return stateOf(uid, readNaming(object, "StatefulSet", { ordinals }), `${ordinals.start}+${ordinals.replicas}`);
    },
    retains: (object, { name, member }, source) => hasMember(name, decodeStatefulSet(object, source), member),
  },
  {
    // A machine that is stopped retains its addresses.
    kind: "VirtualMachine",
    ...ADDRESS_OWNERS.VirtualMachine,
    isOptional: true,
    read: (object, source) => stateOf(requireUid(object, source), readNaming(object, "VirtualMachine")),
    retains: () => true,
  },
  {
    // Created without a VirtualMachine: it runs once.
    kind: "VirtualMachineInstance",
    ...ADDRESS_OWNERS.VirtualMachineInstance,
    isOptional: true,
    read: (object, source) => {
      const { uid, isFinished } = decodeMachine(object, source);
      return { uid, retains: `${!isFinished}` };
    },
    retains: (object, _workload, source) => !decodeMachine(object, source).isFinished,
  },
  {
    kind: "IPAMClaim",
    ...ADDRESS_OWNERS.IPAMClaim,
    isOptional: true,
    read: readClaim,
    retains: () => true,
  },
];

function ownerKindOf(listed: RetainingKind): AddressOwnerKind {
  const { apiVersion, plural } = listed;
  const kind = listedKind(listed);
  return { kind, apiVersion, plural, metadataOnly: true, isOptional: true, read: readUid, retains: () => true };
}

const NO_SETTINGS: Caches["vendorConf"] = { items: new Map(), subscribe: () => () => {}, problems: [] };

interface AddressOwnersOptions {
  readonly api: KubeApi;
  /** The settings, which list further kinds. Default: none. */
  readonly vendorConf?: Caches["vendorConf"];
  readonly budget: ObjectBudget;
  readonly log: Log;
  readonly random: () => number;
}

export interface OpenAddressOwners extends AddressOwners {
  /** Resolves when every first list is complete; later changes are reported. Rejects with the signal's reason. */
  synced(signal?: AbortSignal): Promise<void>;
  /** Sentences without a full stop. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** Starts to watch at once. */
export function openAddressOwners(options: AddressOwnersOptions): OpenAddressOwners {
  const { api, vendorConf = NO_SETTINGS, budget, log, random } = options;
  const listeners = new Listeners<string>((error, uid) => {
    log.error({ err: error, uid }, "Internal error while handling a change of an address owner");
  });
  const follow = ({ apiVersion, plural, metadataOnly = false, isOptional, read }: AddressOwnerKind) => {
    const group = metadataOnly ? ` of ${apiVersion}` : "";
    const onChange = (change?: Change<AddressOwnerState>): void => {
      const uid = change && findChangedOwner(change);
      if (uid !== undefined) listeners.tell(uid);
    };
    return followObjects({ api, log, random }, onChange, {
      ...{ metadataOnly, optional: isOptional, budgeted: { budget } },
      name: `${plural}${group} as address owners`,
      path: collectionPath({ apiVersion, plural }),
      decode: (object) => read(object, describeObject(object)),
    });
  };
  const known = new Map(ADDRESS_OWNER_KINDS.map((each) => [each.kind, follow(each)] as const));
  /** By path: the version and the name in it may change, too. */
  const listed = new Map<string, { readonly kind: string; readonly reflector: Reflector<AddressOwnerState> }>();
  const closing = new Set<Promise<void>>();
  const kinds = (): readonly AddressOwnerKind[] => settingsOf({ vendorConf }).retainByName.map(ownerKindOf);
  const followListed = (): void => {
    const wanted = new Map(kinds().map((each) => [[collectionPath(each), each.kind].join(" "), each] as const));
    for (const [path, { reflector }] of listed)
      if (!wanted.has(path)) {
        listed.delete(path);
        closing.add(reflector.close());
      }
    for (const [path, each] of wanted)
      if (!listed.has(path)) listed.set(path, { kind: each.kind, reflector: follow(each) });
  };
  followListed();
  const unsubscribe = vendorConf.subscribe(followListed);
  const findReflector = (kind: string) =>
    known.get(kind) ?? [...listed.values()].find((each) => each.kind === kind)?.reflector;
  const all = () => [...known.values(), ...[...listed.values()].map(({ reflector }) => reflector)];
  return {
    readLiveness: (workload, signal, isNamed) =>
      readOwner(api, [...ADDRESS_OWNER_KINDS, ...kinds()], { workload, isNamed, signal }),
    findNaming: () =>
      [...known.values()].flatMap(({ items }) => [...items.values()].flatMap(({ naming }) => naming ?? [])),
    findUid: ({ kind, namespace, name }) => findReflector(kind)?.items.get(`${namespace}/${name}`)?.uid,
    subscribe: (listener) => listeners.add(listener),
    synced: async (signal) => void (await Promise.all([...known.values()].map((each) => each.synced(signal)))),
    get problems() {
      return all().flatMap(({ problems }) => problems);
    },
    close: async () => {
      unsubscribe();
      await Promise.all([...closing, ...all().map((reflector) => reflector.close())]);
    },
  };
}

/** Returns the UID of an owner that names addresses, or may retain less than before; undefined otherwise. */
function findChangedOwner(change: Change<AddressOwnerState>): string | undefined {
  const { before } = change;
  if (change.kind === "gone") return before?.uid;
  const { uid, retains, naming } = change.value;
  if (before === undefined) return naming?.uid;
  return uid === before.uid && retains === before.retains ? undefined : before.uid;
}

interface OwnerQuery {
  readonly workload: Workload;
  readonly isNamed: ((of: NamingWorkload | undefined) => boolean) | undefined;
  readonly signal: AbortSignal;
}

async function readOwner(
  api: KubeApi,
  kinds: readonly AddressOwnerKind[],
  { workload, isNamed, signal }: OwnerQuery,
): Promise<Liveness> {
  const resource = kinds.find(({ kind }) => kind === workload.kind);
  if (resource === undefined || workload.namespace === "") return "unknown";
  const source = `${workload.kind} "${workload.namespace}/${workload.name}"`;
  const isAlive = (object: KubeObject) =>
    resource.retains(object, workload, source) && (isNamed?.(resource.read(object, source).naming) ?? true);
  const accept = resource.metadataOnly ? METADATA : undefined;
  return readLiveness(api, { resource, owner: workload, isAlive, signal, ...(accept && { accept }) });
}
