/** The search itself, on a system whose states and violations are known. */
import { expect, it } from "vitest";
import { type SearchResult, STUCK, type System, search } from "./search.ts";

/** Two clients and a lock that each reads and then takes. */
interface Lock {
  readonly first: Client;
  readonly second: Client;
}

/** `gone`: it holds the lock, and does not give it back. */
type Client = "idle" | "has read" | "holds" | "gone";

function lock({ isAtomic, dies }: { readonly isAtomic: boolean; readonly dies: boolean }): System<Lock> {
  const holds = (client: Client): boolean => client === "holds" || client === "gone";
  const stepsOf = (state: Lock, name: keyof Lock, other: Client) => {
    const to = (label: string, client: Client, isCalm = true) => ({
      ...{ label: `${name} ${label}`, isCalm },
      next: { ...state, [name]: client },
    });
    switch (state[name]) {
      case "idle":
        return holds(other) ? [] : [isAtomic ? to("takes", "holds") : to("reads", "has read")];
      case "has read":
        return [to("takes", "holds")];
      case "holds":
        return [to("gives back", "idle"), ...(dies ? [to("dies", "gone", false)] : [])];
      case "gone":
        return [];
    }
  };
  return {
    initial: { first: "idle", second: "idle" },
    steps: async (state) => [...stepsOf(state, "first", state.second), ...stepsOf(state, "second", state.first)],
    // The clients differ in their names alone.
    key: ({ first, second }) => [first, second].sort().join(),
    invariants: {
      "one holder": ({ first, second }) => (holds(first) && holds(second) ? "both hold it" : undefined),
    },
    isAtRest: ({ first, second }) => first === "idle" && second === "idle",
  };
}

it("a search visits each state once and finds no violation where there is none", async () => {
  const found = await search(lock({ isAtomic: true, dies: false }), { maxStates: 100 });
  expect(found).toEqual<SearchResult>({ states: 2, steps: 3, isComplete: true, violations: [] });
});

it("a search finds the shortest path to a violation, and goes on elsewhere", async () => {
  const { states, isComplete, violations } = await search(lock({ isAtomic: false, dies: false }), { maxStates: 100 });
  // Idle or read, each; one holds, and the other is idle or has read; both hold.
  expect({ states, isComplete }).toEqual({ states: 6, isComplete: true });
  expect(violations).toEqual([
    {
      invariant: "one holder",
      problem: "both hold it",
      path: ["first reads", "second reads", "first takes", "second takes"],
    },
  ]);
});

it("a search finds a state that calm steps do not bring to rest", async () => {
  const { violations } = await search(lock({ isAtomic: true, dies: true }), { maxStates: 100 });
  expect(violations).toEqual([
    { invariant: STUCK, problem: "no calm step leads on", path: ["first takes", "first dies"] },
  ]);
});

it("a search that ends at its limit says so, and takes unexpanded states for states at rest", async () => {
  const found = await search(lock({ isAtomic: false, dies: true }), { maxStates: 3 });
  expect(found).toMatchObject({ isComplete: false, violations: [] });
});
