/**
 * Operations as commands: their words are those that `ip` and `sysctl` accept, and nothing of a name reaches the
 * shell. test/e2e/check-remedies.test.ts executes them.
 */
import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { formatCommand } from "../../../host/plan/command.ts";
import type { Operation } from "../../../host/plan/operation.ts";
import type { AddressState, RouteState, RuleState } from "../../../host/plan/state.ts";
import { cases } from "../../world/rows.ts";
import { ip, mac, prefix } from "../../world/values.ts";

const MAC = mac("02:00:00:00:00:01");
const ROUTE: RouteState = {
  ...{ destination: prefix("10.0.0.0/16"), table: 101, type: 1, protocol: 98, scope: 253, flags: 0, link: "eth0" },
  ...{ metric: 0, tos: 0, rest: [] },
};
const RULE: RuleState = {
  ...{ family: 4, preference: 900, table: 500, action: 1, flags: 0, tos: 0, protocol: 98, rest: [] },
};
const ADDRESS: AddressState = { link: "veth0", prefix: prefix("169.254.200.1/32"), scope: 0, flags: 0x80 };
const veth = { host: { name: "vetha", mac: MAC }, pod: { name: "veth0", mac: MAC } };

const route = (changes: Partial<RouteState>, kind = "add-route"): Operation =>
  ({ kind, place: "host", route: { ...ROUTE, ...changes } }) as Operation;
const rule = (changes: Partial<RuleState>): Operation => ({
  ...{ kind: "delete-rule", place: "host", rule: { ...RULE, ...changes } },
});
const address = (changes: Partial<AddressState>): Operation => ({
  ...{ kind: "add-address", place: "pod", address: { ...ADDRESS, ...changes } },
});
const settings = (to: object): Operation => ({ kind: "set-link", place: "host", link: "vetha", from: {}, to });
const sysctl: Operation = { kind: "set-sysctl", place: "host", key: "ipv4/conf/eth0.5/rp_filter", from: "1", to: "0" };
const neighbour = { link: "vetha", ip: ip("fd00::7"), mac: MAC };

const neigh: Operation = { kind: "add-neighbour", place: "host", neighbour };
const empty = { type: 1, flags: 0, value: new Uint8Array() };
const vlan: Operation = {
  kind: "add-device",
  place: "host",
  device: { kind: "vlan", name: "v", parent: "eth0", id: 7 },
};

it.each(cases<Operation>`
  a route ${route({})} => ip route add 10.0.0.0/16 dev eth0 table 101 proto 98 scope link
  one with a source ${route({ scope: 0, preferredSource: ip("10.0.0.9"), metric: 7, flags: 4 })}
    => ip route add scope global 10.0.0.0/16 dev eth0 table 101 proto 98 src 10.0.0.9 metric 7 onlink
  one with a gateway ${route({ scope: 0, gateway: ip("10.0.0.1"), tos: 16 })}
    => ip route add tos 0x10 10.0.0.0/16 via 10.0.0.1 dev eth0 table 101 proto 98
  one that goes ${route({ destination: prefix("::/0"), scope: 0, metric: 256, table: 254 }, "delete-route")}
    => ip -6 route del default dev eth0 proto 98 metric 256
  one beside others ${{ ...route({}), beside: "last" } as Operation} => none
  a rule ${rule({})} => ip rule del pref 900 from all lookup 500 protocol 98
  one of another action ${rule({ protocol: 0, action: 8, tos: 16, rest: [empty] })} => ip rule del pref 900 from all tos 0x10
  one with a mark ${rule({ family: 6, flags: 2, mark: { value: 1, mask: 15 } })}
    => ip -6 rule del not pref 900 from all fwmark 0x1/0xf lookup 500 protocol 98
  an address ${address({ scope: 253, flags: 0x280 })}
    => nsenter --net=/run/netns/a ip addr add 169.254.200.1/32 dev veth0 scope 253 noprefixroute
  one with a peer ${address({ peer: ip("10.0.0.2"), flags: 0x82 })}
    => nsenter --net=/run/netns/a ip addr add 169.254.200.1 peer 10.0.0.2/32 dev veth0 nodad
  an alias and a group ${settings({ alias: "berth it's $(here)", group: 98 })}
    => ip link set dev vetha alias 'berth it'\''s $(here)' group 98
  a MAC address ${settings({ mac: MAC, up: true })} => ip link set dev vetha address 02:00:00:00:00:01 up
  no alias ${settings({ alias: "", up: false })} => ip link set dev vetha alias '' down
  no master ${settings({ master: "" })} => ip link set dev vetha nomaster
  a sysctl ${sysctl} => sysctl -w net/ipv4/conf/eth0.5/rp_filter=0
  a neighbour ${neigh} => ip neigh replace fd00::7 lladdr 02:00:00:00:00:01 dev vetha nud permanent
  one that goes ${{ ...neigh, kind: "delete-neighbour" } as Operation} => ip neigh del fd00::7 dev vetha
  a pair ${{ kind: "add-veth", veth }}
    => ip link add vetha address 02:00:00:00:00:01 type veth peer name veth0 address 02:00:00:00:00:01 netns /run/netns/a
  one that goes ${{ kind: "delete-veth", veth }} => ip link del dev vetha
  a table ${{ kind: "add-table", place: "host", table: { name: "berth", chains: [] } }} => none
  a device ${vlan} => none
`)("%s", (_, operation, command) => expect(formatCommand(operation, "/run/netns/a") ?? "none").toBe(command));

it.each(["$(id)", "a;b", "a'b", "`a`", "a\\b", "-n", "a*"])(
  "a link that is called %j stays one word of the shell",
  (name) => {
    const command = formatCommand(route({ link: name }, "delete-route"), "/run/netns/a b");
    const printed = execFileSync("sh", ["-c", `ip() { printf '%s\\n' "$@"; }; ${command}`], { encoding: "utf8" });
    expect(printed.split("\n")).toContain(name);
  },
);
