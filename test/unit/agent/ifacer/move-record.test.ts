import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { MoveRecord } from "../../../../host/agent/ifacer/move-record.ts";
import { parsePrefix } from "../../../../host/net/prefix.ts";
import type { Operation } from "../../../../host/plan/operation.ts";
import { temporaryDirectory } from "../../../world/temporary-directory.ts";

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory("berth-move-", onTestFinished);
});

const prefix = parsePrefix("fd00::1/64") ?? expect.unreachable();
const OPERATIONS: readonly Operation[] = [
  { kind: "set-link", place: "host", link: "d1", from: { up: true }, to: { up: false } },
  {
    kind: "delete-address",
    place: "host",
    address: { link: "d1", prefix, scope: 0, flags: 0x82, rest: [{ type: 3, flags: 0, value: Uint8Array.of(1, 255) }] },
  },
];

it("gives back the kept addresses, until they are forgotten", () => {
  const record = new MoveRecord(directory, "boot-1");
  expect(record.read()).toEqual([]);
  record.write(OPERATIONS);
  expect(new MoveRecord(directory, "boot-1").read()).toEqual(OPERATIONS);
  expect(readdirSync(directory)).toEqual(["moving.json"]);
  record.remove();
  record.remove();
  expect(record.read()).toEqual([]);
});

it("knows nothing of another boot, of another format, of half a file", () => {
  new MoveRecord(directory, "boot-1").write(OPERATIONS);
  expect(new MoveRecord(directory, "boot-2").read()).toEqual([]);
  const old = '{"format": 2, "boot": "boot-1", "operations": []}';
  for (const text of ["", "{", "null", "[]", old, '{"format": 1, "boot": "boot-1"}']) {
    writeFileSync(join(directory, "moving.json"), text);
    expect(new MoveRecord(directory, "boot-1").read(), text).toEqual([]);
  }
});

it("lets nothing begin where it cannot write", () => {
  expect(() => new MoveRecord(join(directory, "absent"), "b").write(OPERATIONS)).toThrow("ENOENT");
});
