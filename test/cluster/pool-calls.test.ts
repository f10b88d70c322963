/** The checker of a small pool's calls finds an order where there is one, and none where there is none. */
import { expect, it } from "vitest";
import { PoolCalls } from "../lab/history/pool-calls.ts";

const [A, B] = ["10.7.0.1", "10.7.0.2"] as const;

type Scene = (calls: PoolCalls) => void;

const legal: readonly [name: string, scene: Scene][] = [
  [
    "the pool is exhausted while both addresses are being got",
    (calls) => {
      const [a, b, c] = [
        calls.add({ client: 0, pod: "a" }),
        calls.add({ client: 1, pod: "b" }),
        calls.add({ client: 2, pod: "c" }),
      ];
      c.ends({ exhausted: true });
      a.ends({ address: A });
      b.ends({ address: B });
    },
  ],
  [
    "an address is another pod's before its DEL was answered",
    (calls) => {
      calls.add({ client: 0, pod: "a" }).ends({ address: A });
      const del = calls.del({ client: 0, pod: "a" }, A);
      calls.add({ client: 1, pod: "b" }).ends({ address: A });
      del.ends();
    },
  ],
  [
    "an ADD without an answer may have an address, and may have none",
    (calls) => {
      calls.add({ client: 0, pod: "a" });
      calls.add({ client: 1, pod: "b" }).ends({ address: A });
      calls.add({ client: 2, pod: "c" }).ends({ exhausted: true });
      calls.add({ client: 3, pod: "d" }).ends({ address: B });
    },
  ],
  [
    "a member gets its address again",
    (calls) => {
      calls.add({ client: 0, pod: "a", member: "web-0" }).ends({ address: A });
      calls.del({ client: 0, pod: "a", member: "web-0" }, A).ends();
      calls.add({ client: 1, pod: "b" }).ends({ address: B });
      calls.add({ client: 1, pod: "c" }).ends({ exhausted: true });
      calls.add({ client: 0, pod: "d", member: "web-0" }).ends({ address: A });
    },
  ],
];

const illegal: readonly [name: string, scene: Scene][] = [
  [
    "two pods have one address",
    (calls) => {
      calls.add({ client: 0, pod: "a" }).ends({ address: A });
      calls.add({ client: 1, pod: "b" }).ends({ address: A });
    },
  ],
  [
    "the pool is exhausted while an address is free",
    (calls) => {
      calls.add({ client: 0, pod: "a" }).ends({ address: A });
      calls.add({ client: 1, pod: "b" }).ends({ exhausted: true });
    },
  ],
  [
    "each address is taken at some moment, but never both at once",
    (calls) => {
      calls.add({ client: 0, pod: "a" }).ends({ address: A });
      const refused = calls.add({ client: 2, pod: "c" });
      calls.del({ client: 0, pod: "a" }, A).ends();
      calls.add({ client: 1, pod: "b" }).ends({ address: B });
      refused.ends({ exhausted: true });
    },
  ],
  [
    "a member gets another address",
    (calls) => {
      calls.add({ client: 0, pod: "a", member: "web-0" }).ends({ address: A });
      calls.del({ client: 0, pod: "a", member: "web-0" }, A).ends();
      calls.add({ client: 0, pod: "b", member: "web-0" }).ends({ address: B });
    },
  ],
  [
    "a member is refused while its address is retained",
    (calls) => {
      calls.add({ client: 0, pod: "a", member: "web-0" }).ends({ address: A });
      calls.add({ client: 1, pod: "b" }).ends({ address: B });
      calls.del({ client: 0, pod: "a", member: "web-0" }, A).ends();
      calls.add({ client: 0, pod: "c", member: "web-0" }).ends({ exhausted: true });
    },
  ],
  [
    "another pod gets what is retained",
    (calls) => {
      calls.add({ client: 0, pod: "a", member: "web-0" }).ends({ address: A });
      calls.del({ client: 0, pod: "a", member: "web-0" }, A).ends();
      calls.add({ client: 1, pod: "b" }).ends({ address: A });
    },
  ],
];

function check(scene: Scene): Promise<string | undefined> {
  const calls = new PoolCalls("few", [A, B]);
  scene(calls);
  return calls.check();
}

it.each(legal)("legal: %s", async (_name, scene) => expect(await check(scene)).toBeUndefined());
it.each(illegal)("not legal: %s", async (_name, scene) =>
  expect(await check(scene)).toMatch(/^pool few: no order of its \d calls is legal/),
);
