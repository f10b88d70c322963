import { describe, expect, it } from "vitest";
import { attribute, encodeUint32, nest } from "../../../host/kernel/netlink/attribute.ts";
import { decodeLink } from "../../../host/kernel/netlink/families.ts";
import { decodeBond, encodeBond } from "../../../host/kernel/netlink/link/bond.ts";
import { decodeKind, encodeKind, kindName, type LinkKind } from "../../../host/kernel/netlink/link/kind.ts";
import { linkOf } from "../../../host/kernel/netlink/link/link.ts";
import { setLink } from "../../../host/kernel/netlink/link/requests.ts";
import { ip } from "../../world/values.ts";
import { answersTo } from "./recorded.ts";
import { SILENT } from "./silent-conversation.ts";

it("a name with a NUL, which would cut it short, is refused", () => {
  expect(() => setLink(SILENT, 4, { name: "a\0b" })).toThrow(/NUL/);
});

const shown = (name: string) => decodeLink(answersTo("link", `ip link show dev ${name}`)[0] ?? expect.unreachable());

describe("links", () => {
  it("are read as `ip link show` shows them", () => {
    expect(linkOf(shown("w1"))).toMatchObject({ kind: { kind: "veth" }, parent: 7, parentNetnsId: undefined });
    expect(linkOf(shown("m1"))).toMatchObject({ kind: { kind: "macvlan", mode: 1 }, carrier: false });
    expect(linkOf(shown("lo"))).toMatchObject({ kind: undefined, parent: undefined });
  });

  it("with values of a wrong length are refused", () => {
    const message = shown("w1");
    for (const type of [4, 5, 10, 27, 37]) {
      const attributes = [...message.attributes, attribute(type, new Uint8Array(3))];
      expect(() => linkOf({ ...message, attributes })).toThrow(/3 bytes, want 4/);
    }
  });
});

describe("kinds", () => {
  it("that are unknown survive a round trip", () => {
    const attributes = [attribute(1, encodeUint32(9)), { type: 77, flags: 0x8000, value: new Uint8Array(3) }];
    const kind: LinkKind = { kind: "other", name: "ipvlan", attributes };
    const [read] = [decodeKind([{ ...encodeKind(kind), flags: 0 }])];
    expect(read).toEqual({ ...kind, name: "ipvlan" });
    expect(read && kindName(read)).toBe("ipvlan");
  });

  it("without their data, or with data that lie, are refused", () => {
    const bare = (name: string) => nest(18, [attribute(1, new TextEncoder().encode(`${name}\0`))]);
    expect(() => decodeKind([bare("macvlan")])).toThrow(/no macvlan mode/);
    expect(() => decodeKind([bare("vlan")])).toThrow(/no VLAN id/);
    expect(decodeKind([bare("veth")])).toEqual({ kind: "veth" });
    expect(decodeKind([nest(18, [])])).toBeUndefined();
  });

  it("of bonds: every option survives a round trip, and an actor of five bytes is refused", () => {
    const options = { numbers: { primary: 70_000, use_carrier: 0 }, nsIp6Targets: [ip("fd00::1")] };
    expect(decodeBond(encodeBond(options))).toEqual(options);
    expect(() => decodeBond([attribute(26, new Uint8Array(5))])).toThrow(/actor system of 5 bytes/);
    expect(() => decodeBond([attribute(1, new Uint8Array(2))])).toThrow(/2 bytes, want 1/);
  });
});
