/**
 * Objects as the API server has them now, for explanations. In the embedded mode there are none.
 * Effects: one call for each question.
 */
import { isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import { messageOf } from "../../lib/describe.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";

/** How long `berthctl explain pool` tries to read each of the objects behind its answer: milliseconds. @limit */
export const EXPLAIN_PATIENCE_MS = 2_000;

/** What one question told. */
export type Told<T> =
  | { readonly kind: "there"; readonly value: T }
  | { readonly kind: "absent" }
  /** A clause. */
  | { readonly kind: "unseen"; readonly why: string };

export interface LiveObjects {
  /** One of Berth's own kinds by its plural. Never rejects. */
  read(plural: "ippools" | "subnets" | "ippoolusages", name: string): Promise<Told<unknown>>;
}

export function openLiveObjects(api: KubeApi): LiveObjects {
  return {
    read: async (plural, name) => {
      const path = `${API_PATH}/${plural}`;
      const common = { method: "GET", lane: "pod", patienceMs: EXPLAIN_PATIENCE_MS } as const;
      try {
        // Agents may list the pools, and read nothing of them by name.
        if (plural !== "ippools")
          return there(await api.call({ ...common, path: `${path}/${encodeURIComponent(name)}` }));
        const { items } = await api.call({ ...common, path, query: { fieldSelector: `metadata.name=${name}` } });
        return Array.isArray(items) && items.length > 0 ? there(withKind(items[0])) : { kind: "absent" };
      } catch (error) {
        return isNotFound(error) ? { kind: "absent" } : { kind: "unseen", why: messageOf(error) };
      }
    },
  };
}

function there(value: unknown): Told<unknown> {
  return { kind: "there", value };
}

/** The API server leaves both out of the items of a list. */
function withKind(item: unknown): unknown {
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", ...(item as object) };
}
