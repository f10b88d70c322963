/** Which link of the node an overlay pod's first NIC leads to. */
import { expect, it } from "vitest";
import { DEFAULT_COORDINATOR_CONF } from "../../../host/config/coordinator-settings.ts";
import { findOverlayPath } from "../../../host/coordinator/plan/plan-service-path.ts";
import type { LinkState } from "../../../host/plan/state.ts";
import { applyStatement, NOTHING } from "./plan-model.ts";
import { readStatement } from "./plan-words.ts";

const BASE = [
  "host: link cni0 bridge address 02:00:00:00:0c:00 index 2",
  "host: link vethbeef veth address 02:00:00:00:0c:01 index 7",
  "pod: link eth0 veth address 02:00:00:00:0c:02 index 3 peer vethbeef",
]
  .map(readStatement)
  .reduce(applyStatement, NOTHING);

/** Each link with its part changed. */
function linkOnNode(parts: Readonly<Record<string, Partial<LinkState>>>): string | undefined {
  const changed = (links: readonly LinkState[]): LinkState[] => links.map((link) => ({ ...link, ...parts[link.name] }));
  const observed = {
    pod: { ...BASE.pod, links: changed(BASE.pod.links) },
    host: { ...BASE.host, links: changed(BASE.host.links) },
  };
  const first = { name: "eth0", isFirst: true, table: 101, others: [], addresses: [], defaults: [] };
  return findOverlayPath({ observed, conf: DEFAULT_COORDINATOR_CONF }, first, [])?.host?.link;
}

it.each<[what: string, parts: Record<string, Partial<LinkState>>, link: string | undefined]>([
  ["leads to its other end", {}, "vethbeef"],
  ["leads to the bridge of its other end", { vethbeef: { master: "cni0" } }, "cni0"],
  ["leads nowhere if both ends are in the pod", { eth0: { parentElsewhere: false } }, undefined],
  ["leads nowhere if it is gone", { eth0: { name: "eth9" } }, undefined],
  ["leads nowhere if it is no veth", { eth0: { kind: "vxlan" } }, undefined],
  ["leads nowhere if it has no MAC address", { eth0: { mac: undefined } }, undefined],
  ["leads nowhere if the node's link with that index is no veth", { vethbeef: { kind: "vxlan" } }, undefined],
  ["leads nowhere if the node's veth has another peer", { vethbeef: { parent: 4 } }, undefined],
  ["leads nowhere if its other end is not on the node", { vethbeef: { index: 8 } }, undefined],
  ["leads nowhere if the bridge is not on the node", { vethbeef: { master: "br9" } }, undefined],
])("an overlay pod's first NIC %s", (_, parts, link) => expect(linkOnNode(parts)).toBe(link));
