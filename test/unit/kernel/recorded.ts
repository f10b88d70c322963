/** The recorded conversations of `ip` and `nft` (record/record.ts), and what our requests say beside them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { EAGAIN } from "../../../host/kernel/errno.ts";
import { decodeAttributes, encodeAttributes } from "../../../host/kernel/netlink/attribute.ts";
import {
  NLM_F_ACK,
  NLM_F_CAPPED,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
} from "../../../host/kernel/netlink/constants.ts";
import { type Conversation, createConversation, type Request } from "../../../host/kernel/netlink/conversation.ts";
import { NetlinkError } from "../../../host/kernel/netlink/error.ts";
import { decodeMessages, encodeMessages, type Message } from "../../../host/kernel/netlink/message.ts";
import type { Recorded, RecordedMessage } from "./record/record.ts";

export type Family = "link" | "kinds" | "address" | "route" | "rule" | "neighbour" | "netconf" | "nftables";

export function readRecorded(family: Family): Recorded[] {
  const text = readFileSync(join(import.meta.dirname, "recorded", `${family}.txt`), "utf8");
  return text.split(/^\$ /m).slice(1).map(parseRecorded);
}

/** A command and its messages, as record/record.ts writes them. */
function parseRecorded(text: string): Recorded {
  const [command = "", ...lines] = text.trimEnd().split("\n");
  const messagesOf = (mark: string): RecordedMessage[] =>
    lines
      .map((line) => line.split(" "))
      .filter(([first]) => first === mark)
      .map(([, type, flags, payload = ""]) => ({ type: Number(type), flags: Number(flags), payload }));
  return { command, sent: messagesOf(">"), received: messagesOf("<") };
}

export function messageOf({ type, flags, payload }: RecordedMessage): Message {
  return { type, flags, sequence: 0, payload: new Uint8Array(Buffer.from(payload, "hex")) };
}

function rowOf(family: Family, command: string): Recorded {
  return (
    readRecorded(family).find((row) => row.command === command) ?? expect.unreachable(`${command} is not recorded`)
  );
}

/** Returns the kernel's answers to the command, without the end of a dump. */
export function answersTo(family: Family, command: string): Message[] {
  return rowOf(family, command)
    .received.map(messageOf)
    .filter(({ type }) => type > NLMSG_DONE);
}

/** Of each message, before its attributes. */
export const FIXED_BYTES = {
  ...{ link: 16, kinds: 16, address: 8, route: 12, rule: 12 },
  ...{ neighbour: 12, netconf: 4, nftables: 4 },
};

/** Attributes in the order of their types, without those that are empty: neither matters to the kernel. */
function canonical(family: Family, { type, flags, payload }: Message) {
  const fixed = FIXED_BYTES[family];
  const attributes = decodeAttributes(payload, fixed).filter(({ value }) => value.length > 0);
  const bytes = encodeAttributes(attributes.sort((a, b) => a.type - b.type));
  const hex = (part: Uint8Array) => Buffer.from(part).toString("hex");
  return { type, flags: `0x${flags.toString(16)}`, fixed: hex(payload.subarray(0, fixed)), attributes: hex(bytes) };
}

/** `ip` wants no acknowledgement of a question that one message answers; our conversations always do. */
function acknowledged({ sent, received, ...row }: Recorded): Recorded {
  const isEnded = received.some(({ type }) => type === NLMSG_ERROR || type === NLMSG_DONE);
  const asking = sent.map((one) => (one.flags === NLM_F_REQUEST ? { ...one, flags: NLM_F_REQUEST | NLM_F_ACK } : one));
  const ending = { type: NLMSG_ERROR, flags: NLM_F_CAPPED, payload: "00000000" };
  return { ...row, sent: asking, received: isEnded ? received : [...received, ending] };
}

/** A conversation whose kernel answers as it answered the command. */
function replay(row: Recorded): { sent: Message[]; conversation: Conversation } {
  const sent: Message[] = [];
  const answers = [...row.received];
  const send = (datagram: Uint8Array): void => void sent.push(...decodeMessages(datagram));
  const conversation = createConversation({
    send,
    sendAside: async (datagram) => send(datagram),
    receive: () => {
      const sequence = sent.at(-1)?.sequence ?? 0;
      const parts = answers.splice(0).map((message) => encodeMessages([{ ...messageOf(message), sequence }]));
      if (parts.length === 0) throw new NetlinkError({ operation: "receive from the kernel", errno: EAGAIN });
      // an acknowledgement without its attributes: they are tested in message.test.ts
      for (const part of parts) if (part[4] === NLMSG_ERROR) part.fill(0, 6, 8);
      return new Uint8Array(Buffer.concat(parts.flatMap((part) => [part, new Uint8Array(-part.length & 3)])));
    },
    [Symbol.dispose]() {},
  });
  return { sent, conversation };
}

/** Expects that `ask` sends what the command sends. The kernel's refusals then are of no interest. */
export function expectSame(family: Family, command: string, ask: (conversation: Conversation) => unknown): void {
  const row = acknowledged(rowOf(family, command));
  const { sent, conversation } = replay(row);
  const refused = row.received.some(({ type, payload }) => type === NLMSG_ERROR && payload !== "00000000");
  try {
    ask(conversation);
  } catch (error) {
    if (!refused) throw error;
  }
  expect(sent.map((message) => canonical(family, message))).toEqual(
    row.sent.map((message) => canonical(family, messageOf(message))),
  );
}

/** What sends the messages of a command. */
export type Ask = (conversation: Conversation) => unknown;

/** A test for each row, and that every recorded command has one: `create` sends a value, others ask. */
export function itSends<T>(
  family: Family,
  made: Readonly<Record<string, T>>,
  request: (value: T) => Request,
  others: Readonly<Record<string, Ask>>,
): void {
  const creating = Object.entries(made).map(([command, value]): [string, Ask] => [
    command,
    (to) => to.request(request(value)),
  ]);
  const rows = [...creating, ...Object.entries(others)];
  it.each(rows)("%s", (command, ask) => expectSame(family, command, ask));
  it("there is a row for every recorded command", () => {
    const commands = readRecorded(family).map(({ command }) => command);
    const wanted = commands.filter((command) => !command.startsWith("ip link show"));
    expect(rows.map(([command]) => command).sort()).toEqual(wanted.sort());
  });
}

/** The messages that `ip` sent to make the values of these rows. */
export const sentFor = <T>(family: Family, made: Readonly<Record<string, T>>) =>
  readRecorded(family).flatMap(({ command, sent }) => {
    const { [command]: value } = made;
    return value === undefined ? [] : sent.map((one) => ({ command, value, message: messageOf(one) }));
  });
