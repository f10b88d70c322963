/**
 * Operations of every kind, for both namespaces of a scene: added objects are new there, deleted ones are those
 * observed there.
 */
import type { NamespaceQuery } from "../../host/kernel/observe-namespace.ts";
import { observeNamespace } from "../../host/kernel/observe-namespace.ts";
import type { Operation, Veth } from "../../host/plan/operation.ts";
import type { AddressState, RouteState, RuleState } from "../../host/plan/state.ts";
import { ruleset } from "../unit/kernel/ruleset.ts";
import { ip, mac, prefix } from "../world/values.ts";
import type { Scene } from "./kernel-scene.ts";

export const VETH: Veth = {
  host: { name: "veth0a1b2c3d4e5", mac: mac("02:00:00:00:0a:01") },
  pod: { name: "veth0", mac: mac("02:00:00:00:0a:02") },
};

export const everything: NamespaceQuery = {
  addresses: true,
  routeTables: [254, 101, 102, 500, 300_000],
  rules: true,
  neighbours: [{}],
  sysctls: ["ipv4/conf/all/rp_filter", "ipv4/conf/br0/arp_notify", "ipv6/conf/net1/accept_ra"],
  tables: ["berth", "others"],
};

const route = (destination: string, more: Partial<RouteState>): RouteState => {
  const { ip: address, length } = prefix(destination);
  const metric = address.family === 4 ? 0 : 1024;
  const plain = { table: 254, type: 1, protocol: 98, scope: 0, flags: 0, metric, tos: 0, rest: [] };
  return { destination: { ip: address, length }, ...plain, ...more };
};

const rule = (family: 4 | 6, preference: number, table: number, more: Partial<RuleState> = {}): RuleState => ({
  ...{ family, preference, table, action: 1, flags: 0, tos: 0, protocol: 98, rest: [] },
  ...more,
});

const address = (link: string, text: string): AddressState => ({ link, prefix: prefix(text), scope: 0, flags: 0x82 });

function additions(): Operation[] {
  const inPod = VETH.pod.name;
  const onHost = VETH.host.name;
  return [
    { kind: "add-veth", veth: VETH },
    { kind: "set-sysctl", place: "pod", key: `ipv4/conf/${inPod}/rp_filter`, from: undefined, to: "2" },
    { kind: "set-sysctl", place: "host", key: `ipv6/conf/${onHost}/accept_ra`, from: undefined, to: "0" },
    ...(
      [
        ["pod", inPod],
        ["host", onHost],
      ] as const
    ).map(
      ([place, link]): Operation => ({
        ...{ kind: "set-link", place, link, from: { up: false, alias: "", group: 0 } },
        to: { up: true, alias: `for ${link}`, group: 77 },
      }),
    ),
    { kind: "add-address", place: "pod", address: address(inPod, "10.9.0.2/32") },
    { kind: "add-address", place: "pod", address: address(inPod, "fd09::2/128") },
    { kind: "add-address", place: "host", address: address(onHost, "169.254.9.1/32") },
    { kind: "add-neighbour", place: "pod", neighbour: { link: inPod, ip: ip("10.6.0.1"), mac: VETH.host.mac } },
    { kind: "add-neighbour", place: "host", neighbour: { link: onHost, ip: ip("fd06::21"), mac: VETH.pod.mac } },
    { kind: "add-route", place: "pod", route: route("10.9.0.1/32", { link: inPod, scope: 253 }) },
    { kind: "add-route", place: "pod", route: route("10.112.0.0/12", { link: inPod, gateway: ip("10.9.0.1") }) },
    { kind: "add-route", place: "pod", route: route("fd09::1/128", { link: inPod, table: 101 }) },
    { kind: "add-route", place: "host", route: route("10.6.0.21/32", { link: onHost, scope: 253, table: 500 }) },
    { kind: "add-route", place: "host", route: route("fd06::21/128", { link: onHost, table: 500 }) },
    { kind: "add-rule", place: "pod", rule: rule(4, 99, 100, { mark: { value: 1, mask: 1 } }) },
    { kind: "add-rule", place: "pod", rule: rule(6, 101, 101, { from: prefix("fd06::21") }) },
    { kind: "add-rule", place: "host", rule: rule(6, 900, 500) },
    { kind: "add-table", place: "pod", table: ruleset },
    { kind: "add-table", place: "host", table: ruleset },
  ];
}

/** Everything that is of no kernel's making, and settings of present objects. */
export function operationsFor(scene: Scene): Operation[] {
  const [pod, host] = [observeNamespace(scene.pod, everything), observeNamespace(scene.host, everything)];
  const sysctl = (place: "pod" | "host", key: string, to: string): Operation => {
    const from = (place === "pod" ? pod : host).sysctls.get(key);
    return { kind: "set-sysctl", place, key, from, to };
  };
  return [
    ...additions(),
    sysctl("pod", "ipv4/conf/all/rp_filter", "2"),
    sysctl("pod", "ipv6/conf/net1/accept_ra", "2"),
    sysctl("host", "ipv4/conf/br0/arp_notify", "1"),
    {
      ...{ kind: "set-link", place: "pod", link: "spare0" },
      from: { mac: mac("02:00:00:00:00:33"), alias: "", up: false },
      to: { mac: mac("02:00:00:00:00:44"), alias: "moved", up: true },
    },
    {
      kind: "set-link",
      place: "pod",
      link: "eth0",
      from: { alias: "first-NIC", group: 3 },
      to: { alias: "", group: 0 },
    },
    // with fixed neighbours, which the kernel forgets then
    {
      ...{ kind: "set-link", place: "pod", link: "net1" },
      from: { mac: mac("02:00:00:00:00:22") },
      to: { mac: mac("02:00:00:00:00:23") },
    },
    { kind: "add-alt-name", place: "pod", link: "net1", altName: "berth-mac-020000000022-veth0123456789a-net1" },
    ...pod.rules
      .filter(({ preference }) => preference > 0 && preference < 32_000)
      .map((one): Operation => ({ kind: "delete-rule", place: "pod", rule: one })),
    ...pod.routes
      .filter(({ protocol }) => protocol !== 2)
      .map((one): Operation => ({ kind: "delete-route", place: "pod", route: one })),
    ...pod.neighbours.map((one): Operation => ({ kind: "delete-neighbour", place: "pod", neighbour: one })),
    ...host.neighbours.map((one): Operation => ({ kind: "delete-neighbour", place: "host", neighbour: one })),
    ...pod.addresses
      .filter(({ link }) => link === "spare0")
      .map((one): Operation => ({ kind: "delete-address", place: "pod", address: one })),
    { kind: "add-route", place: "pod", route: route("0.0.0.0/0", { link: "net1", gateway: ip("10.7.0.1") }) },
    { kind: "delete-table", place: "host", table: ruleset },
  ];
}
