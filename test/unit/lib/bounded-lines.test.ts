import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { BoundedLines, LOG_RETRY_MS, MAX_UNREAD_LOG_BYTES } from "../../../host/lib/log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Reader {
  /** Bytes that it has room for; `gone` when it never reads again. */
  room: number | "gone";
  received: string;
  readonly lines: BoundedLines;
}

function createReader(room: Reader["room"] = Number.POSITIVE_INFINITY): Reader {
  const reader: Reader = {
    room,
    received: "",
    lines: new BoundedLines({
      send: (bytes) => {
        if (reader.room === "gone") throw new Error("EPIPE");
        const taken = Math.min(reader.room, bytes.length);
        reader.room -= taken;
        reader.received += Buffer.from(bytes.subarray(0, taken)).toString();
        return taken;
      },
      onLoss: (lost) => reader.lines.write(`${lost} lost\n`),
    }),
  };
  return reader;
}

it("lines without room at the reader wait, in their order and with the rest of a line first", () => {
  const reader = createReader(3);
  for (const line of ["one\n", "two\n", "three\n"]) reader.lines.write(line);
  expect(reader.received).toBe("one");
  reader.room = 6;
  vi.advanceTimersByTime(LOG_RETRY_MS);
  expect(reader.received).toBe("one\ntwo\nt");
  reader.room = 100;
  vi.advanceTimersByTime(LOG_RETRY_MS);
  expect(reader.received).toBe("one\ntwo\nthree\n");
  expect(vi.getTimerCount()).toBe(0);
});

it("beyond the limit lines are lost; when the reader is back it gets their number", () => {
  const reader = createReader(0);
  const line = `${"x".repeat(1023)}\n`;
  const fitting = MAX_UNREAD_LOG_BYTES / line.length;
  for (let count = 0; count < fitting + 7; count++) reader.lines.write(line);
  reader.room = Number.POSITIVE_INFINITY;
  vi.advanceTimersByTime(LOG_RETRY_MS);
  expect(reader.received).toBe(`${line.repeat(fitting)}7 lost\n`);
  reader.lines.write("after\n");
  expect(reader.received.endsWith("7 lost\nafter\n")).toBe(true);
});

it("lines that wait at the end of the process are sent without the timer", () => {
  const reader = createReader(0);
  reader.lines.write("last words\n");
  reader.room = 100;
  reader.lines.flush();
  expect(reader.received).toBe("last words\n");
});

it("a reader that is gone costs lines, and nothing else; the next reader gets their number", () => {
  const reader = createReader("gone");
  for (const line of ["a\n", "b\n"]) reader.lines.write(line);
  expect(vi.getTimerCount()).toBe(0);
  reader.room = 100;
  reader.lines.write("c\n");
  expect(reader.received).toBe("c\n2 lost\n");
});
