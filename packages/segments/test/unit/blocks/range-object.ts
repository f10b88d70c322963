import { type AddressRange, type AddressRangeSpec, decodeAddressRange } from "../../../address-range.ts";

/** 10.6.0.0/24 in /28, for the members a, b and c with four blocks each. */
export function rangeOf(spec: object = {}, status?: object): AddressRange {
  const members = ["a", "b", "c"].map((name) => ({ name, user: `user-${name}`, maxBlocks: 4 }));
  return decodeAddressRange(
    {
      apiVersion: "ipam.vendor.io/v1",
      kind: "AddressRange",
      metadata: { name: "lan", uid: "r", resourceVersion: "1" },
      spec: { subnet: "10.6.0.0/24", blockSize: 28, members, ...spec },
      ...(status && { status }),
    },
    "lan",
  );
}

export function rangeSpec(spec: object = {}): AddressRangeSpec {
  return rangeOf(spec).spec;
}
