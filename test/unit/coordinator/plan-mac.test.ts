import { describe, expect, it } from "vitest";
import { ErrorCode } from "../../../host/cni/error.ts";
import { formatAlias, parseAlias, type VethOwner } from "../../../host/coordinator/plan/alias.ts";
import { planMac } from "../../../host/coordinator/plan/plan-mac.ts";
import { parseIp } from "../../../host/net/ip.ts";
import { type Mac, parseMac } from "../../../host/net/mac.ts";
import type { LinkState } from "../../../host/plan/state.ts";

function link(kind: string, mac: Mac | undefined = parseMac("02:00:00:00:00:01")): LinkState {
  return {
    ...{ name: "eth0", index: 2, kind, mac, up: true, carrier: true, loopback: false, alias: "", group: 0 },
    ...{ parent: undefined, parentElsewhere: false, master: undefined },
  };
}

const ips = (...texts: string[]) => texts.flatMap((text) => parseIp(text) ?? []);

describe("the MAC address is the prefix and four octets of the address", () => {
  it("unless the pod requests another one", () => {
    const requested = parseMac("02:42:ac:11:00:09");
    expect(planMac("0a:1b", link("macvlan"), ips("10.6.0.200"), requested)).toBe(requested);
    expect(planMac("0a:1b", link("macvlan"), [], requested), "without an address").toBe(requested);
    expect(() => planMac("0a:1b", link("ipvlan"), ips("10.6.0.200"), requested)).toThrow("which has none of its own");
  });

  it("also without a prefix", () => {
    const requested = parseMac("02:42:ac:11:00:09");
    expect(planMac("", link("macvlan"), ips("10.6.0.200"), requested)).toBe(requested);
    expect(() => planMac("", link("ipvlan"), [], requested)).toThrow('mac of annotation "ipam.vendor.io/ips" "02:42');
  });

  it("and nothing without a prefix, whatever the NIC is", () =>
    expect(planMac("", link("ipvlan"), [])).toBe(undefined));
});

it.each<[what: string, link: LinkState, addresses: string[], text: string]>([
  ["on what is no Ethernet", { ...link("tun"), mac: undefined }, ["10.6.0.2"], "it is of kind tun"],
  ["on a machine's own such device", { ...link(""), mac: undefined }, ["10.6.0.2"], "it has no MAC address"],
])("a prefix is refused: %s", (_what, nic, addresses, text) => {
  const plan = () => planMac("0a:1b", nic, ips(...addresses));
  expect(plan).toThrow(`podMACPrefix "0a:1b" cannot be applied to interface "eth0"`);
  expect(plan).toThrow(text);
  expect(plan).toThrow(expect.objectContaining({ code: ErrorCode.InterfaceRefused }));
});

const OWNER: VethOwner = { owner: "uid-1", containerId: "c1", network: "lan", pod: "shop/web-0" };

describe("the alias of a host's end", () => {
  it.each<[owner: Partial<VethOwner>, text: string]>([
    [{}, "berth uid-1 c1 lan shop/web-0"],
    [{ pod: "" }, "berth uid-1 c1 lan"],
    [{ pod: "shop/日本" }, "berth uid-1 c1 lan shop/日本"],
  ])("%j is %s, and back", (owner, text) => {
    expect(formatAlias({ ...OWNER, ...owner })).toBe(text);
    expect(parseAlias(text)).toEqual({ ...OWNER, ...owner });
  });

  it("names the same container whatever the pod is called", () => {
    const alias = formatAlias({ ...OWNER, owner: "x c-other lan shop/other", pod: "a b\tc" });
    expect(alias).toBe("berth x_c-other_lan_shop/other c1 lan a_b_c");
    expect(parseAlias(alias)).toMatchObject({ containerId: "c1", network: "lan" });
  });

  it.each(["", "a", "ab"])("loses its end when it is too long, and no part of a character stays: %j", (start) => {
    const alias = formatAlias({ ...OWNER, pod: `shop/${start}${"日".repeat(100)}` });
    expect(Buffer.byteLength(alias)).toBeLessThanOrEqual(255);
    expect(alias).toMatch(new RegExp(`^berth uid-1 c1 lan shop/${start}日{76,77}$`));
    expect(parseAlias(alias)).toMatchObject({ containerId: "c1", network: "lan" });
  });

  it("that is so long that fields are lost has no owner", () =>
    expect(parseAlias(formatAlias({ ...OWNER, owner: "u".repeat(300) }))).toBe(undefined));

  it.each(["", "berth", "berth a b", "flannel a b c"])("of another link has no owner: %s", (alias) =>
    expect(parseAlias(alias)).toBe(undefined),
  );
});
