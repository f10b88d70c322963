import { describe, expect, it } from "vitest";
import { type Address, addressOf } from "../../../host/kernel/netlink/address/address.ts";
import { deleteAddress, findAddresses, newAddress } from "../../../host/kernel/netlink/address/requests.ts";
import { attribute } from "../../../host/kernel/netlink/attribute.ts";
import { decodeAddress } from "../../../host/kernel/netlink/families.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import { ip, prefix } from "../../world/values.ts";
import { type Ask, answersTo, itSends, sentFor } from "./recorded.ts";

const plain = { link: 7, scope: 0, flags: 0 };

const made: Record<string, Address> = {
  "ip addr add 10.6.0.21/24 dev v0": { ...plain, prefix: prefix("10.6.0.21/24") },
  "ip addr add fd00::21/64 dev v0 nodad": { ...plain, prefix: prefix("fd00::21/64"), flags: 2 },
  "ip addr add 192.0.2.1 peer 192.0.2.2/31 dev v0 scope link": {
    ...{ ...plain, prefix: prefix("192.0.2.1/31"), peer: ip("192.0.2.2"), scope: 253 },
  },
  "ip addr add 10.6.0.22/32 dev v0 noprefixroute": { ...plain, prefix: prefix("10.6.0.22/32"), flags: 0x200 },
};

const gone = { ...plain, prefix: prefix("10.6.0.99/24") };
const others: Record<string, Ask> = {
  "ip addr show dev v0": (to) => findAddresses(to, 7),
  // flags and scope do not tell addresses apart
  "ip addr del 192.0.2.1 peer 192.0.2.2/31 dev v0": (to) =>
    expect(deleteAddress(to, { ...plain, prefix: prefix("192.0.2.1/31"), peer: ip("192.0.2.2"), flags: 0x80 })).toBe(
      true,
    ),
  "ip addr del 10.6.0.99/24 dev v0": (to) => expect(deleteAddress(to, gone)).toBe(false),
};

describe("address requests", () => itSends("address", made, newAddress, others));

describe("addresses", () => {
  const told = answersTo("address", "ip addr show dev v0").map(decodeAddress).map(addressOf);
  const find = (text: string) => told.find((address) => address && formatPrefix(address.prefix) === text);

  it("are read from the kernel's messages, with peer, scope and all flags", () => {
    expect(find("10.6.0.21/24")).toEqual({ ...plain, prefix: prefix("10.6.0.21/24"), flags: 0x81, peer: undefined });
    expect(find("fd00::21/64")).toMatchObject({ flags: 0x82, peer: undefined });
    expect(find("192.0.2.1/31")).toMatchObject({ peer: ip("192.0.2.2"), scope: 253 });
    expect(find("10.6.0.22/32")).toMatchObject({ flags: 0x280 });
  });

  it.each(sentFor("address", made))("are read from what `ip` sends: $command", ({ value, message }) =>
    expect(addressOf(decodeAddress(message))).toEqual(value),
  );

  it("of other families are none; with a peer of the other family are refused", () => {
    const [message = expect.unreachable()] = answersTo("address", "ip addr show dev v0").map(decodeAddress);
    expect(addressOf({ ...message, family: 28 })).toBeUndefined();
    const attributes = [...message.attributes, attribute(1, new Uint8Array(16))];
    expect(() => addressOf({ ...message, attributes })).toThrow(/16 bytes, want 4/);
  });
});
