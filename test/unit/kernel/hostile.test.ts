/** Whatever bytes come instead of what the kernel told: they are read, or refused with NetlinkError. */
import { expect, it } from "vitest";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { readers } from "./readers.ts";
import { type Family, messageOf, readRecorded } from "./recorded.ts";

const families: Family[] = ["link", "kinds", "address", "route", "rule", "neighbour", "netconf", "nftables"];

/** Every cut, and every byte changed to what lengths and types lie with. */
function* changed(payload: Uint8Array): Generator<Uint8Array> {
  for (let length = 0; length < payload.length; length++) yield payload.slice(0, length);
  for (let at = 0; at < payload.length; at++) {
    for (const value of [0, 1, 3, 8, 0x7f, 0xff]) yield payload.with(at, value);
  }
}

it.each(families)("%s messages", (family) => {
  const messages = readRecorded(family)
    .flatMap(({ received }) => received)
    .map(messageOf)
    .filter(({ type }) => readers.has(type));
  // one of each length: the recorded ones are much alike
  const different = [...new Map(messages.map((one) => [`${one.type} ${one.payload.length}`, one])).values()];
  expect(different.length).toBeGreaterThan(0);
  let refused = 0;
  for (const message of different) {
    const read = readers.get(message.type) ?? expect.unreachable();
    read(message);
    for (const payload of changed(message.payload)) {
      try {
        read({ ...message, payload });
      } catch (error) {
        if (!(error instanceof NetlinkError)) throw error;
        refused++;
      }
    }
  }
  expect(refused).toBeGreaterThan(20);
});
