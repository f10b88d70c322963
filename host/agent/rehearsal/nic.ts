/** The NIC of a rehearsal: what a main plugin would have made between two network namespaces, with addresses of documentation (RFC 5737). */
import { IFA_F_PERMANENT } from "../../kernel/netlink/address/constants.ts";
import { RT_SCOPE_UNIVERSE, RT_TABLE_MAIN, RTN_UNICAST, RTPROT_BOOT } from "../../kernel/netlink/route/constants.ts";
import { invariant } from "../../lib/invariant.ts";
import { parseMac } from "../../net/mac.ts";
import { EVERYWHERE, parsePrefix } from "../../net/prefix.ts";
import type { Operation } from "../../plan/operation.ts";

export const NIC = "eth0";
const UPLINK = "uplink";

/** Nothing has them outside of the two namespaces. */
export const NODE_ADDRESS = parsed(parsePrefix("192.0.2.1/24"));
export const POD_ADDRESS = parsed(parsePrefix("192.0.2.2/24"));

function parsed<T>(value: T | undefined): T {
  invariant(value !== undefined, "A text of the rehearsal is malformed");
  return value;
}

/** Returns how to make it: a pair of veth, an address at each end, and the pod's default route. */
export function makeNic(): Operation[] {
  const address = { scope: RT_SCOPE_UNIVERSE, flags: IFA_F_PERMANENT };
  const route = { table: RT_TABLE_MAIN, type: RTN_UNICAST, protocol: RTPROT_BOOT, scope: RT_SCOPE_UNIVERSE };
  const up = (place: "host" | "pod", link: string): Operation => ({
    ...{ kind: "set-link", place, link },
    from: { up: false },
    to: { up: true },
  });
  const veth = {
    host: { name: UPLINK, mac: parsed(parseMac("02:00:00:00:00:01")) },
    pod: { name: NIC, mac: parsed(parseMac("02:00:00:00:00:02")) },
  };
  return [
    { kind: "add-veth", veth },
    up("host", UPLINK),
    up("pod", NIC),
    { kind: "add-address", place: "host", address: { ...address, link: UPLINK, prefix: NODE_ADDRESS } },
    { kind: "add-address", place: "pod", address: { ...address, link: NIC, prefix: POD_ADDRESS } },
    {
      kind: "add-route",
      place: "pod",
      route: {
        ...{ ...route, destination: EVERYWHERE[4], gateway: NODE_ADDRESS.ip, link: NIC },
        ...{ flags: 0, metric: 0, tos: 0, rest: [] },
      },
    },
  ];
}
