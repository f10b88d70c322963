/** A pod's address on a server of record: Berth's entry, and the mark by which Berth recognises it. */

/** Longest description: characters. Nautobot has 255, NetBox 200. */
const MAX_DESCRIPTION = 200;

/** Longest DNS name: characters (RFC 1035 §2.3.4). */
const MAX_DNS_NAME = 253;

/** The place of an address on the server. */
export interface AddressPlace {
  /** Namespace of Nautobot, VRF of NetBox; "" is NetBox's global table. */
  readonly space: string;
  /** As text without a length. */
  readonly ip: string;
}

/** An entry as it is wanted. */
export interface PodAddress extends AddressPlace {
  readonly prefixLength: number;
  readonly dnsName: string;
  /** Has the mark of the cluster. */
  readonly description: string;
}

/** An entry of the server. */
export interface ServerAddress extends PodAddress {
  readonly id: string;
  /** Has Berth's tag, and the mark of this cluster. */
  readonly isOwn: boolean;
}

/** The writer: the cluster's UID, which marks its entries, its name for people, and the suffix of DNS names. */
export interface RecordingCluster {
  readonly uid: string;
  readonly name: string;
  /** `pods.east.example.com`; "": names end with the namespace. */
  readonly domain: string;
}

/** The NIC that has an address. */
interface RecordedNic {
  readonly namespace: string;
  readonly pod: string;
  readonly ifName: string;
}

/** Returns the text to search for in descriptions: `[berth 1e6f…]`. */
export function markOf(uid: string): string {
  return `[berth ${uid}]`;
}

/** Returns `Pod shop/web-0 eth0, cluster east [berth 1e6f…]`; long names are cut. */
export function describeNic({ namespace, pod, ifName }: RecordedNic, { uid, name }: RecordingCluster): string {
  const rest = `, cluster ${name} ${markOf(uid)}`;
  const shown = `Pod ${namespace}/${pod} ${ifName}`;
  const room = MAX_DESCRIPTION - rest.length;
  return `${shown.length <= room ? shown : `${shown.slice(0, room - 1)}…`}${rest}`;
}

/** Returns `web-0.shop.pods.east.example.com`; "" if it would be too long for a DNS name. */
export function dnsNameOf({ namespace, pod }: RecordedNic, { domain }: RecordingCluster): string {
  const name = [pod, namespace, ...(domain === "" ? [] : [domain])].join(".");
  return name.length <= MAX_DNS_NAME ? name : "";
}

/** Returns a text that an entry on the server shares with the wanted one if their contents are equal. */
export function contentOf({ prefixLength, dnsName, description }: PodAddress): string {
  return `${prefixLength} ${dnsName.toLowerCase()} ${description}`;
}

/** Returns a key of a Map. */
export function placeKey({ space, ip }: AddressPlace): string {
  return `${ip} ${space}`;
}
