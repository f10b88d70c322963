import { describe, expect, it } from "vitest";
import { EAGAIN, EINTR, ENOBUFS } from "../../../host/kernel/errno.ts";
import { NLM_F_DUMP_INTR } from "../../../host/kernel/netlink/constants.ts";
import { createConversation, DUMP_ATTEMPTS, Refusal } from "../../../host/kernel/netlink/conversation.ts";
import { decodeMessages, encodeMessages } from "../../../host/kernel/netlink/message.ts";
import { answersOf, restamp, type Step, scriptDatagrams } from "./scripted-datagrams.ts";
import { addressesAbsent, addressesV0, linkNameTooLong, linkV0, type Vector } from "./vectors.ts";

const question = { operation: "ask", type: 22, payload: new Uint8Array(8) };

/** Number and flags of each message. */
const headersOf = (sent: readonly Uint8Array[]): string[] =>
  sent.flatMap(decodeMessages).map(({ sequence, flags }) => `${sequence} 0x${flags.toString(16)}`);

function dumpOver(...answers: Step[][]) {
  const datagrams = scriptDatagrams(answers);
  const messages = createConversation(datagrams).dump(question);
  return { requested: datagrams.sent.length, count: messages.length };
}

function interrupted(vector: Vector, sequence: number, part: number): Uint8Array[] {
  return vector.answers.map((datagram, at) => restamp(datagram, sequence, at === part ? NLM_F_DUMP_INTR : 0));
}

describe("request", () => {
  it("numbers its questions from 1 and asks for an acknowledgement", () => {
    const datagrams = scriptDatagrams([answersOf(linkV0, 1), answersOf(linkV0, 2)]);
    const conversation = createConversation(datagrams);
    expect(conversation.request(question)).toHaveLength(1);
    expect(conversation.request({ ...question, flags: 0x400 })).toHaveLength(1);
    expect(headersOf(datagrams.sent)).toEqual(["1 0x5", "2 0x405"]);
  });

  it("passes over answers to questions given up, and over NOOP", () => {
    const noop = encodeMessages([{ type: 1, flags: 0, sequence: 1, payload: new Uint8Array() }]);
    const stale = [...answersOf(linkNameTooLong, 7), ...answersOf(addressesV0, 0), noop];
    const datagrams = scriptDatagrams([[...stale, ...answersOf(linkV0)]]);
    expect(createConversation(datagrams).request(question)).toHaveLength(1);
  });

  it("has the kernel's text and the place of the fault", () => {
    const conversation = createConversation(scriptDatagrams([answersOf(linkNameTooLong)]));
    expect(() => conversation.request(question)).toThrow(
      expect.objectContaining({
        operation: "ask",
        errno: 34,
        offset: 32,
        message: "Cannot ask: result too large (ERANGE): Attribute failed policy validation at byte 32",
      }),
    );
  });

  it.each([EAGAIN, ENOBUFS])("fails when no answer comes: errno %i", (errno) => {
    const conversation = createConversation(scriptDatagrams([[errno]]));
    expect(() => conversation.request(question)).toThrow(expect.objectContaining({ errno }));
  });
});

describe("request aside", () => {
  it("is sent by another thread, and asks for an acknowledgement", async () => {
    const datagrams = scriptDatagrams([answersOf(linkV0)]);
    const aside: Uint8Array[] = [];
    const sendAside = (datagram: Uint8Array): Promise<void> => {
      aside.push(datagram);
      return datagrams.sendAside(datagram);
    };
    await expect(createConversation({ ...datagrams, sendAside }).requestAside(question)).resolves.toHaveLength(1);
    expect(headersOf(aside)).toEqual(["1 0x5"]);
  });

  it("fails with the kernel's refusal, and when it cannot be sent", async () => {
    const datagrams = scriptDatagrams([answersOf(linkNameTooLong)]);
    await expect(createConversation(datagrams).requestAside(question)).rejects.toMatchObject({ errno: 34 });
    const sendAside = () => Promise.reject(new Error("no descriptor"));
    await expect(createConversation({ ...datagrams, sendAside }).requestAside(question)).rejects.toThrow(
      "no descriptor",
    );
  });
});

describe("dump", () => {
  it("reads all parts up to the end", () => {
    expect(dumpOver(answersOf(addressesV0))).toEqual({ requested: 1, count: 4 });
    const [part = new Uint8Array(), end = new Uint8Array()] = answersOf(addressesV0);
    expect(dumpOver([part, part, part, end])).toEqual({ requested: 1, count: 12 });
    expect(dumpOver([new Uint8Array([...part, ...end])])).toEqual({ requested: 1, count: 4 });
  });

  const [part = new Uint8Array()] = answersOf(addressesV0);
  it.each<[what: string, steps: Step[]]>([
    ["a change interrupted its first part", interrupted(addressesV0, 1, 0)],
    ["a change interrupted its last part", interrupted(addressesV0, 1, 1)],
    ["the kernel had no room for a part", [part, ENOBUFS]],
  ])("is repeated when %s, and read to its end first", (_, steps) =>
    expect(dumpOver(steps, answersOf(addressesV0, 2))).toEqual({ requested: 2, count: 4 }),
  );

  it("is given up when it is interrupted for ever", () => {
    const answers = Array.from({ length: 2 * DUMP_ATTEMPTS }, (_, index) => interrupted(addressesV0, index + 1, 0));
    const datagrams = scriptDatagrams(answers);
    expect(() => createConversation(datagrams).dump(question)).toThrow(expect.objectContaining({ errno: EINTR }));
    expect(datagrams.sent).toHaveLength(DUMP_ATTEMPTS);
  });

  it.each<[what: string, steps: Step[], fault: RegExp]>([
    ["with the error in its end", answersOf(addressesAbsent), /no such device \(ENODEV\)/],
    ["when its end never comes", [part], /EAGAIN/],
    ["when a part is cut off", [part.subarray(0, -1)], /Cannot decode message/],
  ])("fails %s", (_, steps, fault) => expect(() => dumpOver(steps)).toThrow(fault));

  it("in parts is passed on as it comes, once, and fails with the error in its end", () => {
    const stream = (steps: Step[]): number[] =>
      Array.from(createConversation(scriptDatagrams([steps])).stream(question), ({ length }) => length);
    const [part = new Uint8Array(), end = new Uint8Array()] = answersOf(addressesV0);
    expect(stream([part, part, end])).toEqual([4, 4, 0]);
    expect(stream([...answersOf(addressesAbsent, 7), new Uint8Array([...part, ...end])])).toEqual([0, 4]);
    expect(stream(interrupted(addressesV0, 1, 0))).toEqual([4, 0]);
    expect(() => stream(answersOf(addressesAbsent))).toThrow(/no such device \(ENODEV\)/);
  });
});

describe("pipeline", () => {
  it("sends all requests in one datagram, each with its number, and asks to acknowledge the last", () => {
    const [link] = answersOf(linkV0, 1);
    const datagrams = scriptDatagrams([[link ?? new Uint8Array(), ...answersOf(linkV0, 2)]]);
    const outcomes = createConversation(datagrams).pipeline([question, { ...question, flags: 0x400 }]);
    expect(outcomes).toEqual([[expect.anything()], [expect.anything()]]);
    expect(datagrams.sent).toHaveLength(1);
    expect(headersOf(datagrams.sent)).toEqual(["1 0x1", "2 0x405"]);
  });

  it("returns the refusal of each, and the answers behind it", () => {
    const answers = [...answersOf(linkNameTooLong, 1), ...answersOf(linkV0, 2), ...answersOf(linkNameTooLong, 3)];
    const lazy = { ...question, operation: () => "ask late" };
    const outcomes = createConversation(scriptDatagrams([answers])).pipeline([question, question, lazy]);
    const [first, second, third] = outcomes;
    expect(second).toEqual([expect.anything()]);
    for (const [at, refused] of [first, third].entries()) {
      const operation = ["ask", "ask late"][at];
      expect(refused).toMatchObject({ errno: 34 });
      expect(refused instanceof Refusal && refused.toError()).toMatchObject({ operation, errno: 34, offset: 32 });
    }
  });

  it("passes over answers to other requests, and needs none for no requests", () => {
    const answers = [...answersOf(linkV0, 9), ...answersOf(linkV0, 1)];
    expect(createConversation(scriptDatagrams([answers])).pipeline([question])).toEqual([[expect.anything()]]);
    expect(createConversation(scriptDatagrams([])).pipeline([])).toEqual([]);
  });

  it("fails when an answer is missing", () => {
    const conversation = createConversation(scriptDatagrams([answersOf(linkV0, 1)]));
    expect(() => conversation.pipeline([question, question])).toThrow(expect.objectContaining({ errno: EAGAIN }));
  });
});
