/** Which of the node's addresses a pod uses. */
import { describe, expect, it } from "vitest";
import { findHostAddresses } from "../../../host/coordinator/plan/plan-service-path.ts";
import { type Family, formatIp } from "../../../host/net/ip.ts";
import { ip } from "../../world/values.ts";
import { applyStatement, NOTHING } from "./plan-model.ts";
import { readStatement } from "./plan-words.ts";

function find(family: Family, pod: string, lines: readonly string[], end?: string): string[] {
  const { host } = lines.map((line) => readStatement(`host: addr ${line}`)).reduce(applyStatement, NOTHING);
  return findHostAddresses(host, family, [ip(pod)], end).map(formatIp);
}

describe("the address of a link", () => {
  it.each(["eth0", "bond0", "vlan7", "br-ex", "br-ab", "eth0-veth", "wlo1", "lom1", "green0", "site2"])(
    "of the machine counts: %s",
    (link) => expect(find(4, "10.6.0.21", [`192.0.2.2/24 dev ${link}`])).toEqual(["192.0.2.2"]),
  );

  it.each(["lo", "dummy0"])("of %s counts only where there is no other", (link) => {
    const lines = [`192.0.2.2/32 dev ${link}`, "172.17.0.1/16 dev docker0"];
    expect(find(4, "10.6.0.21", lines)).toEqual(["192.0.2.2"]);
    expect(find(6, "fd00:6::21", [`fd00::2/128 dev ${link}`, "fe80::1/64 dev eth0 scope link"])).toEqual(["fd00::2"]);
    expect(find(4, "10.6.0.21", [...lines, "10.6.0.2/24 dev eth0"])[0]).toBe("10.6.0.2");
  });

  it.each(["docker0", "cni0", "veth01", "br-0123456789ab", "kube-ipvs0", "nodelocaldns", "vxlan.calico", "gre-dc2"])(
    "of containers, tunnels or services does not: %s",
    (link) => expect(find(4, "10.6.0.21", [`192.0.2.2/24 dev ${link}`])).toEqual([]),
  );
});

describe("the node's addresses", () => {
  it.each<[what: string, family: Family, lines: string[], expected: string[]]>([
    ["near the pod come first", 4, ["192.0.2.2/24 dev eth1", "10.6.0.2/24 dev eth0"], ["10.6.0.2", "192.0.2.2"]],
    ["are told once", 4, ["10.6.0.2/24 dev eth0", "10.6.0.2/16 dev eth1"], ["10.6.0.2"]],
    ["of the other family are not told", 6, ["10.6.0.2/24 dev eth0"], []],
    ["that follow the first of a subnet count", 4, ["10.6.0.3/24 dev eth0 flags 0x81"], ["10.6.0.3"]],
    ["that are temporary do not", 6, ["fd00:6::dead/64 dev eth0 flags 0x1"], []],
    ["that are being probed do not", 6, ["fd00:6::2/64 dev eth0 flags 0x40"], []],
    [
      "end with the kernel's source address",
      4,
      ["172.17.0.1/16 dev docker0", "172.18.0.1/16 dev docker1", "10.6.0.2/24 dev eth0"],
      ["10.6.0.2", "172.17.0.1"],
    ],
  ])("%s", (_, family, lines, expected) => expect(find(family, "10.6.0.21", lines)).toEqual(expected));

  it.each<[what: string, end: string, expected: string[]]>([
    ["has an address of its own, as a bridge or the end of a ptp", "cni0", ["10.6.0.2", "10.244.1.1"]],
    ["has none", "cali7", ["10.6.0.2"]],
  ])("end with the kernel's source address over the link to the pod, which %s", (_, end, expected) =>
    expect(find(4, "10.6.0.21", ["10.6.0.2/24 dev eth0", "10.244.1.1/24 dev cni0"], end)).toEqual(expected),
  );
});
