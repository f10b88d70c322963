/** The record that an ADD of `berth` leaves for the coordinator of the same chain. */
import { describe, expect, it } from "vitest";
import {
  ANSWER_VALID_MS,
  AnsweredAttachments,
  MAX_REMEMBERED_ANSWERS,
} from "../../../host/agent/detection/answered-attachments.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import { ip, mac } from "../../world/values.ts";

const nic = { containerId: "c-a", ifName: "eth0" };
const held: readonly Allocation[] = [];

describe("an answer", () => {
  let nowMs = 0;
  const answered = () => new AnsweredAttachments(() => nowMs);

  it("is taken once, by its own attachment", () => {
    const memory = answered();
    memory.answer(nic, held);
    expect(memory.takeAnswer({ ...nic, ifName: "net1" })).toBeUndefined();
    expect(memory.takeAnswer({ ...nic, containerId: "c-b" })).toBeUndefined();
    expect(memory.takeAnswer(nic)).toBe(held);
    expect(memory.takeAnswer(nic)).toBeUndefined();
  });

  it("is valid for a moment only: later the registry may know better", () => {
    const memory = answered();
    memory.answer(nic, held);
    nowMs += ANSWER_VALID_MS - 1;
    expect(memory.takeAnswer(nic)).toBe(held);
    memory.answer(nic, held);
    nowMs += ANSWER_VALID_MS;
    expect(memory.takeAnswer(nic)).toBeUndefined();
  });

  it("is forgotten with the attachment", () => {
    const memory = answered();
    memory.answer(nic, held);
    memory.delete(nic);
    expect(memory.takeAnswer(nic)).toBeUndefined();
  });

  it("of a chain without a coordinator makes room for later ones", () => {
    const memory = answered();
    for (let count = 0; count <= MAX_REMEMBERED_ANSWERS; count++)
      memory.answer({ ...nic, containerId: `c-${count}` }, held);
    expect(memory.takeAnswer({ ...nic, containerId: "c-0" })).toBeUndefined();
    expect(memory.takeAnswer({ ...nic, containerId: "c-1" })).toBe(held);
  });
});

describe("addresses that were probed before they were on the NIC", () => {
  const [first, second, third] = [ip("10.6.0.1"), ip("10.6.0.2"), ip("fd00::3")];
  const others = [
    { ...nic, ifName: "net1" },
    { ...nic, containerId: "c-b" },
  ];

  it("need not be probed again on that NIC, those of a repeated ADD included", () => {
    const memory = new AnsweredAttachments();
    memory.add(nic, [first]);
    memory.add(nic, [third]);
    expect([first, second, third].map((each) => memory.has(nic, each))).toEqual([true, false, true]);
    for (const other of others) expect(memory.has(other, first)).toBe(false);
    expect(memory.isShared(nic, first), "they are announced").toBe(false);
    expect(memory.size).toBe(1);
  });

  it("are none where another pod has them, too: those are not announced either", () => {
    const memory = new AnsweredAttachments();
    memory.add(nic, [first]);
    memory.share(nic, [second, third]);
    expect([first, second, third].map((each) => memory.has(nic, each))).toEqual([true, true, true]);
    expect([first, second, third].map((each) => memory.isShared(nic, each))).toEqual([false, true, true]);
    for (const other of others)
      expect([memory.has(other, second), memory.isShared(other, second)]).toEqual([false, false]);
    memory.share(nic, [second]);
    expect(memory.isShared(nic, third), "as of the last ADD").toBe(false);
  });

  it("are forgotten with the attachment, not with another", () => {
    const memory = new AnsweredAttachments();
    memory.add(nic, [first]);
    memory.share(nic, [second]);
    for (const other of others) memory.delete(other);
    expect([memory.has(nic, first), memory.isShared(nic, second), memory.size]).toEqual([true, true, 1]);
    memory.delete(nic);
    expect([memory.has(nic, first), memory.has(nic, second), memory.isShared(nic, second), memory.size]).toEqual([
      ...[false, false, false, 0],
    ]);
  });
});

it("an answer is valid by a clock that runs on", () => {
  const memory = new AnsweredAttachments();
  memory.answer(nic, held);
  expect(memory.takeAnswer(nic)).toBe(held);
});

describe("the MAC of a NIC", () => {
  it("is known for its own attachment until that is deleted", () => {
    const memory = new AnsweredAttachments();
    const known = { requested: undefined, found: mac("02:00:00:00:00:01") };
    memory.setMac(nic, known);
    expect(memory.macOf(nic)).toBe(known);
    expect(memory.macOf({ ...nic, ifName: "net1" })).toBeUndefined();
    memory.delete(nic);
    expect(memory.macOf(nic)).toBeUndefined();
  });
});
