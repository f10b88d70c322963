/** What an ADD of `berth` leaves for the coordinator of the same chain. */
import { describe, expect, it } from "vitest";
import {
  ANSWER_VALID_MS,
  AnsweredAttachments,
  MAX_REMEMBERED_ANSWERS,
} from "../../../host/agent/detection/answered-attachments.ts";
import type { Allocation } from "../../../host/registry/registry.ts";

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
