/** Objects as etcd keeps them: the writers of IPAllocations, and the workloads that retain addresses. */
import { isDeepStrictEqual } from "node:util";
import type { Workload } from "../../../host/resources/member.ts";
import type { Owner } from "./allocation-checker.ts";
import type { Writer } from "./allocation-rules.ts";

export interface StoredObject {
  readonly metadata: {
    readonly uid: string;
    readonly namespace?: string;
    readonly deletionTimestamp?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields?: readonly {
      readonly manager?: string;
      readonly fieldsV1?: { readonly "f:spec"?: Readonly<Record<string, unknown>> };
    }[];
  };
  // biome-ignore lint/suspicious/noExplicitAny: kinds are many; a wrong name gives undefined.
  readonly spec?: any;
  readonly status?: { readonly phase?: string };
}

/** The option of an API server whose built-in kinds can be read, too. */
export const STORED_AS_JSON = "--storage-media-type=application/json";

/** Undefined: deleted. Throws for an object in the other form of built-in kinds. */
export function parseStored(value: string | undefined): StoredObject | undefined {
  if (value?.startsWith("{") === false) throw new Error(`The API server runs without ${STORED_AS_JSON}`);
  return value === undefined ? undefined : JSON.parse(value);
}

/**
 * By the owner of the field that this write has changed, which the API server takes from the client's user agent; the
 * lab's proxies add the node. Undefined: the write has changed none of these fields.
 */
export function writerOf(before: StoredObject | undefined, { metadata, spec }: StoredObject): Writer | undefined {
  const changed = ["state", "holders", "node"].find((field) => !isDeepStrictEqual(before?.spec[field], spec[field]));
  if (changed === undefined) return undefined;
  const isOwner = ({ fieldsV1 }: { fieldsV1?: { "f:spec"?: object } }) =>
    `f:${changed}` in (fieldsV1?.["f:spec"] ?? {});
  const [program, node] = metadata.managedFields?.find(isOwner)?.manager?.split(" ") ?? [];
  if (program === "berth-controller") return { kind: "controller" };
  return program === "berth-agent" ? { kind: "agent", node } : { kind: "hand" };
}

const SET = /^\/registry\/statefulsets\//;
const OTHERS = /^\/registry\/(?:kubevirt\.io\/virtualmachine(?:instance)?s|k8s\.cni\.cncf\.io\/ipamclaims)\//;

/** Whether it is an object's that may retain addresses. */
export function isOwnerKey(key: string): boolean {
  return SET.test(key) || OTHERS.test(key);
}

/** Undefined: it retains nothing (docs/workloads.md). */
export function ownerOf(key: string, { metadata, spec }: StoredObject): Owner | undefined {
  if (metadata.deletionTimestamp !== undefined) return undefined;
  const isHere = ({ namespace }: Pick<Workload, "namespace">): boolean => namespace === metadata.namespace;
  if (OTHERS.test(key)) return { wants: isHere };
  if (!SET.test(key)) return undefined;
  const { replicas = 1, ordinals } = spec;
  const start: number = ordinals?.start ?? 0;
  return {
    wants: (workload) => {
      const ordinal = Number(/-(\d+)$/.exec(workload.member)?.[1]);
      return isHere(workload) && ordinal >= start && ordinal < start + replicas;
    },
  };
}
