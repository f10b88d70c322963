/** The record that an ADD of `berth` leaves for the coordinator of the same chain. */
import { beforeEach, describe, expect, it } from "vitest";
import {
  ANSWER_VALID_MS,
  AnsweredAttachments,
  MAX_REMEMBERED_ANSWERS,
} from "../../../host/agent/detection/answered-attachments.ts";
import type { Allocation } from "../../../host/registry/registry.ts";
import { mac } from "../../world/values.ts";

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
    const taken = [...others, nic, nic].map((each) => memory.takeAnswer(each));
    expect(taken).toEqual([undefined, undefined, held, undefined]);
  });

  it("is valid for a moment only: later the registry may know better", () => {
    memory.answer(nic, held);
    nowMs += ANSWER_VALID_MS - 1;
    expect(memory.takeAnswer(nic)).toBe(held);
    memory.answer(nic, held);
    nowMs += ANSWER_VALID_MS;
    expect(memory.takeAnswer(nic)).toBeUndefined();
  });

  it("of a chain without a coordinator makes room for later ones", () => {
    for (let count = 0; count <= MAX_REMEMBERED_ANSWERS; count++)
      memory.answer({ ...nic, containerId: `c-${count}` }, held);
    expect(memory.takeAnswer({ ...nic, containerId: "c-0" })).toBeUndefined();
    expect(memory.takeAnswer({ ...nic, containerId: "c-1" })).toBe(held);
  });
});

it("the MAC of a NIC is known for its own attachment until that is deleted", () => {
  const known = { requested: undefined, found: mac("02:00:00:00:00:01") };
  memory.setMac(nic, known);
  expect([nic, ...others].map((each) => memory.macOf(each))).toEqual([known, undefined, undefined]);
  memory.delete(nic);
  expect(memory.macOf(nic)).toBeUndefined();
});
