import { describe, expect, it } from "vitest";
import { attribute } from "../../../host/kernel/netlink/attribute.ts";
import { type Conversation, createConversation, type Request } from "../../../host/kernel/netlink/conversation.ts";
import { encodeMessages, type Message } from "../../../host/kernel/netlink/message.ts";
import { NFT_MSG_NEWCHAIN } from "../../../host/kernel/netlink/nftables/constants.ts";
import { decodeNft } from "../../../host/kernel/netlink/nftables/message.ts";
import { createTable } from "../../../host/kernel/netlink/nftables/requests.ts";
import { matchInterface, matchOtherThan, setMark } from "../../../host/kernel/netlink/nftables/statement.ts";
import { chainOf, decodeExpression } from "../../../host/kernel/netlink/nftables/table.ts";
import { ruleset } from "./ruleset.ts";
import { scriptDatagrams } from "./scripted-datagrams.ts";
import { SILENT } from "./silent-conversation.ts";

/** Returns the messages that createTable sends. */
function batchOf(): Message[] {
  const requests: Request[] = [];
  const conversation: Conversation = { ...SILENT, batch: (all) => void requests.push(...all) };
  createTable(conversation, ruleset);
  return requests.map(({ type, flags = 0, payload }) => ({ type, flags, sequence: 0, payload }));
}

describe("nf_tables", () => {
  it("a mark outside of its mask, and a name that no interface can have, are bugs", () => {
    expect(() => setMark("ct", 3, 1)).toThrow(/Mark 3 has bits outside of its mask 1/);
    expect(() => matchInterface("iifname", "x".repeat(16))).toThrow(/no name of an interface/);
    expect(() => matchInterface("iifname", "")).toThrow(/no name of an interface/);
    expect(matchOtherThan("iifname", "veth")[1]).toMatchObject({ value: new TextEncoder().encode("veth") });
    expect(matchInterface("iifname", "veth*")[1]).toMatchObject({
      value: new TextEncoder().encode("veth*".padEnd(16, "\0")),
    });
  });

  it("a mark of the highest bit keeps all others", () => {
    const [, bitwise] = setMark("meta", 0x8000_0000, 0x8000_0000);
    expect(bitwise).toMatchObject({ mask: Uint8Array.of(255, 255, 255, 127), xor: Uint8Array.of(0, 0, 0, 128) });
  });

  it("an expression without a name is refused", () =>
    expect(() => decodeExpression(attribute(1, new Uint8Array()))).toThrow(/no name/));

  it("chains that no hook calls, or of other types, are none", () => {
    expect(chainOf({ family: 1, resource: 0, attributes: [] })).toBeUndefined();
    const [message = expect.unreachable()] = batchOf().filter(({ type }) => type === NFT_MSG_NEWCHAIN);
    const decoded = decodeNft(message, NFT_MSG_NEWCHAIN);
    const attributes = [...decoded.attributes, attribute(7, new TextEncoder().encode("odd\0"))];
    expect(chainOf({ ...decoded, attributes })).toBeUndefined();
  });
});

const payload = new Uint8Array(5);
const requests = ["begin", "first", "second", "end"].map((operation, at) => ({ operation, type: at + 20, payload }));
const answer = (sequence: number, errno: number) => {
  const payload = new Uint8Array(20);
  new DataView(payload.buffer).setInt32(0, -errno, true);
  return encodeMessages([{ type: 2, flags: 0x100, sequence, payload }]);
};

it("a batch fails with the first refusal, even of a request without an acknowledgement", () => {
  const fail = (...answers: Uint8Array[]) => {
    const conversation = createConversation(scriptDatagrams([answers]));
    return () => conversation.batch(requests);
  };
  expect(fail(answer(2, 17), answer(3, 0))).toThrow(/^Cannot first: .*EEXIST/);
  expect(fail(answer(1, 1))).toThrow(/^Cannot begin: .*EPERM/);
  expect(fail(answer(9, 17), answer(3, 2))).toThrow(/^Cannot second: .*ENOENT/);
  expect(fail(answer(9, 17))).toThrow(/EAGAIN/);
});
