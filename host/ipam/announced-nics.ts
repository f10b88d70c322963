/**
 * Which NICs a pod will have, as far as it announces them, and for which of them one request claims addresses.
 */
import { MAX_POD_NICS } from "../config/annotation-schemas.ts";
import type { PodAnnotations } from "../config/annotations.ts";

type Announcement = Pick<PodAnnotations, "networks" | "ippools" | "subnets">;

/** Name of the NIC of the pod's list of networks that has this index; 0 is the first of the list, not of the pod. */
function announcedName({ networks }: Pick<Announcement, "networks">, index: number): string {
  return networks?.[index]?.interface ?? `net${index + 1}`;
}

/** The first NIC and those of the pod's list of networks, in the order in which they are attached. */
export function announcedNics(announcement: Pick<Announcement, "networks">, firstNic: string): string[] {
  return [firstNic, ...(announcement.networks ?? []).map((_, index) => announcedName(announcement, index))];
}

/**
 * Whether a request for `ifName` also claims the addresses of another NIC that a list of the pod's annotations names: only of one that the pod announces.
 * Whoever writes pods writes the list, and an address claimed for a NIC that never comes is missing elsewhere for minutes.
 */
export function claimedWith(ifName: string, announcement: Announcement, firstNic: string): (nic: string) => boolean {
  const announced = new Set(announcedNics(announcement, firstNic));
  return (nic) => nic === ifName || announced.has(nic);
}

/** Names of the NICs whose addresses a request for `ifName` claims, as far as the annotations tell: at most MAX_POD_NICS. */
export function demandedNics(ifName: string, announcement: Announcement, firstNic: string): string[] {
  const listed = [
    ...(announcement.subnets ?? []).map((entry) => entry.interface),
    ...(announcement.ippools ?? []).map((entry, index) => entry.interface ?? nicNameAt(index, announcement, firstNic)),
  ];
  return [...new Set([ifName, ...listed.filter(claimedWith(ifName, announcement, firstNic))])].slice(0, MAX_POD_NICS);
}

/** The NIC of an entry without a name: the order of the entries is the order of the NICs. */
export function nicNameAt(index: number, announcement: Pick<Announcement, "networks">, firstNic: string): string {
  return index === 0 ? firstNic : announcedName(announcement, index - 1);
}
