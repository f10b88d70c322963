/** Lines such as `link e0.7 vlan on e0 id 7 down` → values; those of addresses and routes are the coordinator's. */
import { parseMac } from "../../../host/net/mac.ts";
import { BOND_NUMBER_NAMES } from "../../../host/plan/bond.ts";
import type { LinkState, NamespaceState } from "../../../host/plan/state.ts";
import { applyStatement } from "../coordinator/plan-model.ts";
import { readStatement } from "../coordinator/plan-words.ts";
import { newLink } from "./device-model.ts";

function readLink(words: readonly string[], links: readonly LinkState[]): LinkState {
  const [name = "", kind = ""] = words;
  const after = (word: string): string | undefined =>
    words.includes(word) ? words[words.indexOf(word) + 1] : undefined;
  const numbers = Object.fromEntries(
    BOND_NUMBER_NAMES.flatMap((each) => (after(each) === undefined ? [] : [[each, Number(after(each))]])),
  );
  const id = after("id");
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
    ...(kind === "bond" && { bond: { numbers: { mode: 0, miimon: 0, ...numbers }, primary: after("primary") ?? "" } }),
  });
}

/** The node once the line holds. */
export function follow(state: NamespaceState, line: string): NamespaceState {
  const words = line.split(" ");
  if (words[0] === "link") return { ...state, links: [...state.links, readLink(words.slice(1), state.links)] };
  const statement = readStatement(`host: ${line}`);
  return applyStatement({ pod: state, host: state }, statement).host;
}
