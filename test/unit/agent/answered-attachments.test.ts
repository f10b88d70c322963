/** The record that an ADD of `berth` leaves for the coordinator of the same chain. */
import { beforeEach, describe, expect, it } from "vitest";
import {
  ANSWER_VALID_MS,
  AnsweredAttachments,
  MAX_REMEMBERED_ANSWERS,
} from "../../../host/agent/detection/answered-attachments.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import { ip, mac } from "../../world/values.ts";

const nic = { containerId: "c-a", ifName: "eth0" };
const others = [
  { ...nic, ifName: "net1" },
  { ...nic, containerId: "c-b" },
];
const held: readonly Allocation[] = [];

let nowMs = 0;
let memory: AnsweredAttachments;
beforeEach(() => {
  memory = new AnsweredAttachments(() => nowMs);
});

describe("an answer", () => {
  it("is taken once, by its own attachment", () => {
    memory.answer(nic, held);
    expect([...others, nic, nic].map((each) => memory.takeAnswer(each))).toEqual([
      undefined,
      undefined,
      held,
      undefined,
    ]);
  });

  it("is valid for a moment only: later the registry may know better", () => {
    memory.answer(nic, held);
    nowMs += ANSWER_VALID_MS - 1;
    expect(memory.takeAnswer(nic)).toBe(held);
    memory.answer(nic, held);
    nowMs += ANSWER_VALID_MS;
    expect(memory.takeAnswer(nic)).toBeUndefined();
  });

  it("is forgotten with the attachment", () => {
    memory.answer(nic, held);
    memory.delete(nic);
    expect(memory.takeAnswer(nic)).toBeUndefined();
  });

  it("of a chain without a coordinator makes room for later ones", () => {
    for (let count = 0; count <= MAX_REMEMBERED_ANSWERS; count++)
      memory.answer({ ...nic, containerId: `c-${count}` }, held);
    expect(memory.takeAnswer({ ...nic, containerId: "c-0" })).toBeUndefined();
    expect(memory.takeAnswer({ ...nic, containerId: "c-1" })).toBe(held);
  });
});

describe("addresses that were probed before they were on the NIC", () => {
  const [first, second, third] = [ip("10.6.0.1"), ip("10.6.0.2"), ip("fd00::3")];

  it("need not be probed again on that NIC, those of a repeated ADD included", () => {
    memory.add(nic, [first]);
    memory.add(nic, [third]);
    expect([first, second, third].map((each) => memory.has(nic, each))).toEqual([true, false, true]);
    for (const other of others) expect(memory.has(other, first)).toBe(false);
    expect(memory.isShared(nic, first), "they are announced").toBe(false);
    expect(memory.size).toBe(1);
  });

  it("are none where another pod has them, too: those are not announced either", () => {
    memory.add(nic, [first]);
    memory.share(nic, [second, third]);
    const all = [first, second, third];
    expect(all.map((each) => [memory.has(nic, each), memory.isShared(nic, each)])).toEqual(
      [false, true, true].map((isShared) => [true, isShared]),
    );
    for (const other of others)
      expect([memory.has(other, second), memory.isShared(other, second)]).toEqual([false, false]);
    memory.share(nic, [second]);
    expect(memory.isShared(nic, third), "as of the last ADD").toBe(false);
  });

  it("are forgotten with the attachment, not with another", () => {
    memory.add(nic, [first]);
    memory.share(nic, [second]);
    for (const other of others) memory.delete(other);
    expect([memory.has(nic, first), memory.isShared(nic, second), memory.size]).toEqual([true, true, 1]);
    memory.delete(nic);
    expect([first, second].map((each) => memory.has(nic, each) || memory.isShared(nic, each))).toEqual([false, false]);
    expect(memory.size).toBe(0);
  });
});

it("the MAC of a NIC is known for its own attachment until that is deleted", () => {
  const known = { requested: undefined, found: mac("02:00:00:00:00:01") };
  memory.setMac(nic, known);
  expect([nic, ...others].map((each) => memory.macOf(each))).toEqual([known, undefined, undefined]);
  memory.delete(nic);
  expect(memory.macOf(nic)).toBeUndefined();
});
