import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { AgentError } from "../../../host/cli/ask-agent.ts";
import { ClusterSource } from "../../../host/cli/cluster-source.ts";
import { type Followed, followRecords } from "../../../host/cli/follow-records.ts";
import { NodeSource } from "../../../host/cli/node-source.ts";
import type { Source } from "../../../host/cli/source.ts";
import type { KubeClient } from "../../../host/kubernetes/client.ts";
import { ALLOCATIONS, MemoryApiServer } from "../../fakes/memory-api-server.ts";

interface Item {
  readonly name: string;
  readonly value: number;
}

const A = { name: "a", value: 1 };
const B = { name: "b", value: 1 };

/** Looks at these one after the other; an error is a look that fails. `notes` are added. */
async function follow(looks: readonly (readonly Item[] | Error)[], notes: string[] = []): Promise<Followed<Item>[]> {
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
  const following = { ...names, read, note: (text: string) => void notes.push(text) };
  return Array.fromAsync(followRecords(source, following, new AbortController().signal));
}

const changes = ({ added, changed, removed, isFirst }: Followed<Item>) => ({ added, changed, removed, isFirst });

it("the first look is told as it is, also an empty one, later ones only if they differ", async () => {
  const later = { ...A, value: 2 };
  const seen = await follow([[A], [A], [later, B], [later, B], [B], []]);
  expect(seen.map(changes)).toEqual([
    { added: [A], changed: [], removed: [], isFirst: true },
    { added: [B], changed: [later], removed: [], isFirst: false },
    { added: [], changed: [], removed: [later], isFirst: false },
    { added: [], changed: [], removed: [B], isFirst: false },
  ]);
  expect(seen[1]?.records).toEqual([later, B]);
  expect((await follow([[], []])).map(changes)).toEqual([{ added: [], changed: [], removed: [], isFirst: true }]);
});

it("an agent that is away is told once and changes nothing, unless it is at the first look", async () => {
  const [away, notes] = [new AgentError("away"), [] as string[]];
  expect(await follow([[A], away, away, [A, B], away], notes)).toHaveLength(2);
  expect(notes).toEqual(["away", "away"]);
  await expect(follow([away, [A]])).rejects.toThrow("away");
  await expect(follow([[A], new Error("a fault")])).rejects.toThrow("a fault");
});

const server = new MemoryApiServer();

it.each<[string, Source]>([
  ["an agent", new NodeSource("/nowhere")],
  ["a cluster that changes during each look", new ClusterSource(server.client() as KubeClient)],
])("%s is looked at again and again, with pauses, until the command ends", async (_, source) => {
  const closing = new AbortController();
  const looks = source.changes("allocations", closing.signal, () => {});
  const isDone = async () => (await looks.next()).done;
  expect(await isDone()).toBe(false);
  server.put(ALLOCATIONS, "10.6.0.1", {});
  await setImmediate();
  const lookedMs = performance.now();
  expect([await isDone(), performance.now() - lookedMs > 200]).toEqual([false, true]);
  closing.abort();
  expect(await isDone()).toBe(true);
});
