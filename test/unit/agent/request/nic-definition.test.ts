import { expect, it } from "vitest";
import { type NicNetwork, type NicSettings, pluginsOfNic } from "../../../../host/agent/request/nic-definition.ts";
import type { PodSubject } from "../../../../host/ipam/model.ts";

const plugins = (type: string) => [{ entry: { type }, place: "" }];
const pod = {} as PodSubject;
const node: NicSettings["pluginsOf"] = (network) => (network === "lan" ? plugins("node's") : undefined);
const announced = (network: string, attachment?: string): NicNetwork => ({
  ...{ ifName: "eth0", network, attachment, plugins: plugins("announced") },
});

it.each<[string, NicNetwork[], string, string[]]>([
  ["of the node's network", [], "lan", ["node's"]],
  ["of the definition that the pod names, not the node's", [announced("lan", "shop/lan")], "lan", ["announced"]],
  ["of the node's network that the pod has by default", [announced("lan")], "lan", ["node's"]],
  ["not of another network that the pod names for the NIC", [announced("other", "shop/other")], "lan", ["node's"]],
  ["of a network that only the pod names", [announced("far", "shop/far")], "far", ["announced"]],
  ["of an unknown network: none", [announced("far")], "none", []],
])("a NIC's plugins are those %s", (_what, nics, network, types) => {
  const found = pluginsOfNic({ nicsOf: () => nics, pluginsOf: node }, { ifName: "eth0", network, pod });
  expect(found.map(({ entry }) => entry.type)).toEqual(types);
});
