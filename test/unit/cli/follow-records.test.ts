import { expect, it } from "vitest";
import { type Followed, followRecords } from "../../../host/cli/follow-records.ts";
import { NodeSource } from "../../../host/cli/node-source.ts";
import type { Source } from "../../../host/cli/source.ts";

interface Item {
  readonly name: string;
  readonly value: number;
}

const A = { name: "a", value: 1 };
const B = { name: "b", value: 1 };

/** Looks at these one after the other; an error is a look that fails. */
async function follow(looks: readonly (readonly Item[] | Error)[], isPatient = true): Promise<Followed<Item>[]> {
  const rest = [...looks];
  const source = {
    async *changes() {
      while (rest.length > 0) yield;
    },
  } as unknown as Source;
  const read = async () => {
    const look = rest.shift();
    if (look === undefined || look instanceof Error) throw look;
    return look;
  };
  const names = { kind: "allocations" as const, nameOf: ({ name }: Item) => name };
  const following = { ...names, read, onFailure: () => isPatient };
  return Array.fromAsync(followRecords(source, following, new AbortController().signal));
}

const changes = ({ added, changed, removed, isFirst }: Followed<Item>) => ({ added, changed, removed, isFirst });

it("the first look is told as it is, later ones only if they differ", async () => {
  const later = { ...A, value: 2 };
  const seen = await follow([[A], [A], [later, B], [later, B], [B], []]);
  expect(seen.map(changes)).toEqual([
    { added: [A], changed: [], removed: [], isFirst: true },
    { added: [B], changed: [later], removed: [], isFirst: false },
    { added: [], changed: [], removed: [later], isFirst: false },
    { added: [], changed: [], removed: [B], isFirst: false },
  ]);
  expect(seen[1]?.records).toEqual([later, B]);
});

it("an empty first look is told", async () => {
  expect((await follow([[], []])).map(changes)).toEqual([{ added: [], changed: [], removed: [], isFirst: true }]);
});

it("a look that fails changes nothing, unless it is the first one, or no reader waits", async () => {
  expect(await follow([[A], new Error("away"), [A, B]])).toHaveLength(2);
  await expect(follow([new Error("away"), [A]])).rejects.toThrow("away");
  await expect(follow([[A], new Error("away")], false)).rejects.toThrow("away");
});

it("an agent is asked again and again, until the command ends", async () => {
  const closing = new AbortController();
  const looks = new NodeSource("/nowhere").changes("pools", closing.signal);
  const isDone = async () => (await looks.next()).done;
  expect([await isDone(), await isDone()]).toEqual([false, false]);
  closing.abort();
  expect(await isDone()).toBe(true);
});
