/** Which NICs a pod announces, and for which of them one request claims addresses. */
import { MAX_POD_NICS } from "../config/annotation-schemas.ts";
import type { PodAnnotations } from "../config/annotations.ts";
import type { ConfigError } from "../config/config-error.ts";
import { nicNameOf } from "../config/network-selection.ts";

type Announcement = Pick<PodAnnotations, "networks" | "networksFault" | "defaultNetwork" | "ippools" | "subnets">;

/** Returns the first NIC and those of the pod's list of networks, in the order in which they are attached. */
export function announcedNics(announcement: Pick<Announcement, "networks">, firstNic: string): string[] {
  return [firstNic, ...(announcement.networks ?? []).map(nicNameOf)];
}

/** Returns why the annotations that name the NIC's network are wrong; undefined if they are not. */
export function faultOfNic(
  { networks = [], networksFault, defaultNetwork }: Pick<Announcement, "networks" | "networksFault" | "defaultNetwork">,
  ifName: string,
  firstNic: string,
): ConfigError | undefined {
  if (ifName === firstNic) return defaultNetwork?.fault;
  const own = networks.filter((each, index) => nicNameOf(each, index) === ifName);
  return own.every(({ fault }) => fault !== undefined) ? (own[0]?.fault ?? networksFault) : undefined;
}

/**
 * Returns whether a request for `ifName` also claims the addresses of another NIC listed in the pod's annotations:
 * only if the pod announces that NIC. An address claimed for a NIC that never comes is unavailable to other pods for
 * minutes.
 */
export function claimedWith(ifName: string, announcement: Announcement, firstNic: string): (nic: string) => boolean {
  const announced = new Set(announcedNics(announcement, firstNic));
  return (nic) => nic === ifName || (announced.has(nic) && faultOfNic(announcement, nic, firstNic) === undefined);
}

/** Returns the NICs whose addresses a request for `ifName` claims by the annotations: at most MAX_POD_NICS. */
export function demandedNics(ifName: string, announcement: Announcement, firstNic: string): string[] {
  const listed = [
    ...(announcement.subnets ?? []).map((entry) => entry.interface),
    ...(announcement.ippools ?? []).map((entry, index) => entry.interface ?? nicNameAt(index, announcement, firstNic)),
  ];
  return [...new Set([ifName, ...listed.filter(claimedWith(ifName, announcement, firstNic))])].slice(0, MAX_POD_NICS);
}

/** Returns the NIC of an entry without a name: entries apply to the NICs in order. */
export function nicNameAt(index: number, announcement: Pick<Announcement, "networks">, firstNic: string): string {
  return index === 0 ? firstNic : nicNameOf(announcement.networks?.[index - 1], index - 1);
}
