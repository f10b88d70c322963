/** The port between an API server in memory and its admission of writes, and the accounts that write. */
import type { StoredObject } from "../memory-objects.ts";

/** As the API server knows it by its token. */
export interface Writer {
  readonly username: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export const ADMINISTRATOR: Writer = { username: "kubernetes-admin" };
export const CONTROLLER: Writer = { username: "system:serviceaccount:kube-system:berth-controller" };

/** The agent of the node, with a token that is bound to it. */
export function agentOf(node: string): Writer {
  return {
    username: "system:serviceaccount:kube-system:berth-agent",
    extra: { "authentication.kubernetes.io/node-name": [node] },
  };
}

export interface Write {
  /** Path of the object's collection. */
  readonly collection: string;
  readonly operation: "CREATE" | "UPDATE" | "DELETE";
  readonly part: "status" | undefined;
  readonly writer: Writer;
  /** As it would be stored; undefined: it is deleted. */
  readonly object: StoredObject | undefined;
  readonly oldObject: StoredObject | undefined;
}

export interface Admission {
  /** Whether the status of the collection's kind is written apart from the rest. */
  hasStatus(collection: string): boolean;
  /**
   * Returns the object as its kind has it: without unknown fields, and with defaults. Throws {@link ApiError} 400 for
   * unknown fields if `isStrict`.
   */
  shape<T extends object>(collection: string, object: T, isStrict: boolean): T;
  /** Throws {@link ApiError} 422 for an object that its kind refuses, and 403 for a write that a policy refuses. */
  admit(write: Write): void;
}

/** No kind has a schema, and no policy is there. */
export const ADMITS_ALL: Admission = { hasStatus: () => true, shape: (_, object) => object, admit: () => {} };
