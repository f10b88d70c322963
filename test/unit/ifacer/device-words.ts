/**
 * Lines such as `link e0.7 vlan on e0 id 7 down` → values; those of addresses and routes are the coordinator's, with
 * a label and a broadcast address.
 */

import type { Ip } from "../../../host/net/ip.ts";
import { parseMac } from "../../../host/net/mac.ts";
import { BOND_NUMBER_NAMES } from "../../../host/plan/bond.ts";
import type { OpaqueAttribute } from "../../../host/plan/nft-table.ts";
import type { LinkState, NamespaceState } from "../../../host/plan/state.ts";
import { ip } from "../../world/values.ts";
import { applyStatement } from "../coordinator/plan-model.ts";
import { readStatement } from "../coordinator/plan-words.ts";
import { COPIED, newLink } from "./device-model.ts";

function readLink(words: readonly string[], links: readonly LinkState[]): LinkState {
  const [name = "", kind = ""] = words;
  const after = (word: string): string | undefined =>
    words.includes(word) ? words[words.indexOf(word) + 1] : undefined;
  const numbers = Object.fromEntries(
    BOND_NUMBER_NAMES.flatMap((each) => (after(each) === undefined ? [] : [[each, Number(after(each))]])),
  );
  const id = after("id");
  const targets = (word: string): Ip[] | undefined => after(word)?.split(",").map(ip);
  return newLink(name, links.length + 1, {
    kind: kind === "device" || kind === "loopback" ? "" : kind,
    loopback: kind === "loopback",
    up: !words.includes("down"),
    parent: links.find((link) => link.name === after("on"))?.index,
    parentElsewhere: words.includes("elsewhere"),
    master: after("master"),
    mac: after("address") === undefined ? undefined : parseMac(after("address") ?? ""),
    mtu: Number(after("mtu") ?? 1500),
    ...(kind === "vlan" && { vlan: { id: Number(id), protocol: words.includes("802.1ad") ? 0x88a8 : 0x8100 } }),
    ...(kind === "bond" && {
      bond: {
        numbers: { mode: 0, miimon: 0, ...numbers },
        primary: after("primary") ?? "",
        arpIpTargets: targets("arp_ip_target"),
        nsIp6Targets: targets("ns_ip6_target"),
      },
    }),
  });
}

/** Returns the attributes that the words name, and takes those words away. */
function takeCopied(words: string[]): OpaqueAttribute[] {
  return Object.entries(COPIED).flatMap(([word, type]) => {
    const at = words.indexOf(word);
    if (at < 0) return [];
    const [, value = ""] = words.splice(at, 2);
    return [{ type, flags: 0, value: Buffer.from(value) }];
  });
}

/** The node once the line holds. */
export function follow(state: NamespaceState, line: string): NamespaceState {
  const words = line.split(" ");
  if (words[0] === "link") return { ...state, links: [...state.links, readLink(words.slice(1), state.links)] };
  const rest = takeCopied(words);
  const statement = readStatement(`host: ${words.join(" ")}`);
  if (statement.fact.kind === "addr" && rest.length > 0)
    return { ...state, addresses: [...state.addresses, { ...statement.fact.address, rest }] };
  return applyStatement({ pod: state, host: state }, statement).host;
}
