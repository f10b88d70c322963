/**
 * The former MAC address of a NIC whose ADD changed it, as an alternative name of the NIC:
 * `berth-mac-020000007701-veth1a2b3c4d5e6-eth0`. The kernel keeps it with the device in every namespace, so that DEL
 * can give the address back to a NIC that outlives its pod.
 */
import { invariant } from "../../lib/invariant.ts";
import { type Mac, parseMac } from "../../net/mac.ts";
import type { Operation, Veth } from "../../plan/operation.ts";
import type { LinkState, Place } from "../../plan/state.ts";

/** The NIC of an attachment, by the name of the pod's pair, which derives from the container ID. */
interface AttachedNic {
  readonly pair: Veth;
  readonly ifName: string;
}

const RECORD = /^berth-mac-([0-9a-f]{12})-(.+)$/;

const nameOf = ({ pair, ifName }: AttachedNic): string => `${pair.host.name}-${ifName}`;

const formatRecord = (mac: Mac, nic: AttachedNic): string => `berth-mac-${mac.replaceAll(":", "")}-${nameOf(nic)}`;

interface FormerMac {
  readonly altName: string;
  readonly mac: Mac;
  /** The NIC whose ADD recorded it. */
  readonly nic: string;
}

function recordsOf({ altNames = [] }: LinkState): FormerMac[] {
  return altNames.flatMap((altName) => {
    const [, digits, nic] = RECORD.exec(altName) ?? [];
    if (digits === undefined || nic === undefined) return [];
    const mac = parseMac(digits.replace(/..(?=.)/g, "$&:"));
    invariant(mac !== undefined, `${digits} are six octets`);
    return [{ altName, mac, nic }];
  });
}

/** Returns whether an ADD of the attachment changed the MAC of its NIC. */
export function hasFormerMac(link: LinkState, nic: AttachedNic): boolean {
  return recordsOf(link).some((each) => each.nic === nameOf(nic));
}

/**
 * Returns the operations of an ADD, with the NIC's former MAC recorded before the operation that changes it. A record
 * that no DEL of an earlier attachment used is taken over.
 */
export function recordFormerMac(operations: readonly Operation[], link: LinkState, nic: AttachedNic): Operation[] {
  const sets = operations.findIndex(
    (each) => each.kind === "set-link" && each.place === "pod" && each.link === link.name && each.to.mac !== undefined,
  );
  if (sets < 0 || link.mac === undefined || hasFormerMac(link, nic)) return [...operations];
  const name = { place: "pod", link: link.name } as const;
  const [earlier] = recordsOf(link);
  const record: Operation[] = [
    { kind: "add-alt-name", ...name, altName: formatRecord(earlier?.mac ?? link.mac, nic) },
    ...recordsOf(link).map(({ altName }): Operation => ({ kind: "delete-alt-name", ...name, altName })),
  ];
  return operations.toSpliced(sets, 0, ...record);
}

/**
 * Returns the operations that restore links' former MACs. In a pod they restore only the attachment's own NIC; on the
 * node, where the links belong to no pod any more, each link (`nic` undefined).
 */
export function planReturn(place: Place, links: readonly LinkState[], nic?: AttachedNic): Operation[] {
  return links.flatMap((link) => {
    const [record] = recordsOf(link).filter((each) => nic === undefined || each.nic === nameOf(nic));
    if (record === undefined) return [];
    const { name, mac } = link;
    const set: Operation = { kind: "set-link", place, link: name, from: { mac }, to: { mac: record.mac } };
    return [
      ...(mac === record.mac ? [] : [set]),
      { kind: "delete-alt-name", place, link: name, altName: record.altName },
    ];
  });
}
