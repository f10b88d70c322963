/**
 * Annotations with which users of other IPAMs choose addresses. Berth ignores them: a pod that has them and none of
 * Berth's was probably moved.
 */
import { documentation } from "../lib/documentation.ts";
import { ANNOTATION_PREFIX } from "./annotations.ts";

/** Most such annotations that are named. */
export const MAX_FOREIGN_ANNOTATIONS = 4;

/** Longest name of an annotation that is shown: characters. A longer one is none of these. */
const MAX_KEY_LENGTH = 128;

interface ForeignIpam {
  readonly name: string;
  /** Returns whether a person writes the annotation: Calico and Spiderpool also write some by themselves. */
  readonly isWritten: (key: string) => boolean;
  /** The annotations concern the pod's first NIC only. */
  readonly isOfFirstNic: boolean;
}

const CALICO_KEYS = ["ipv4pools", "ipv6pools", "ipAddrs", "ipAddrsNoIpam", "floatingIPs"];

const FOREIGN_IPAMS: readonly ForeignIpam[] = [
  {
    name: "Spiderpool",
    isWritten: (key) => key.startsWith("ipam.spidernet.io/") && !key.startsWith("ipam.spidernet.io/assigned-"),
    isOfFirstNic: false,
  },
  { name: "Whereabouts", isWritten: (key) => key.startsWith("whereabouts.cni.cncf.io/"), isOfFirstNic: false },
  {
    name: "Calico",
    isWritten: (key) => CALICO_KEYS.some((name) => key === `cni.projectcalico.org/${name}`),
    isOfFirstNic: true,
  },
];

function ipamOf(key: string): ForeignIpam | undefined {
  return key.length > MAX_KEY_LENGTH ? undefined : FOREIGN_IPAMS.find(({ isWritten }) => isWritten(key));
}

/** Returns the names of such annotations; none if the object has annotations of Berth. */
export function foreignAnnotations(annotations: unknown): string[] {
  if (typeof annotations !== "object" || annotations === null) return [];
  const keys = Object.keys(annotations);
  if (keys.some((key) => key.startsWith(ANNOTATION_PREFIX))) return [];
  return keys.filter((key) => ipamOf(key) !== undefined).slice(0, MAX_FOREIGN_ANNOTATIONS);
}

/** Returns a sentence about those that concern the NIC; undefined if none does. */
export function describeForeign(keys: readonly string[], isFirstNic: boolean): string | undefined {
  const ignored = keys.filter((key) => isFirstNic || ipamOf(key)?.isOfFirstNic === false);
  const [first] = ignored;
  if (first === undefined) return undefined;
  const names = ignored.map((key) => JSON.stringify(key)).join(", ");
  const what = ignored.length === 1 ? `Annotation ${names} is` : `Annotations ${names} are`;
  return `${what} of ${ipamOf(first)?.name} and ignored by Berth, which serves this pod; ${documentation("annotations.html#annotations-of-other-ipams")} has Berth's`;
}
