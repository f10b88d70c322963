/** The observer and the checker of histories notice faults that are switched on in agents, and find none without. */
import { expect, it } from "vitest";
import { findFaultOnWire } from "../lab/cluster/fault-on-wire.ts";

type Observer = keyof Awaited<ReturnType<typeof findFaultOnWire>>;

const NOTICED: readonly (readonly [fault: string, by: readonly Observer[]])[] = [
  ["an address that another pod has is written over", ["history"]],
  ["a claim is answered before its record exists", ["history", "observer"]],
  ["a cooling address is taken over at once", ["history"]],
  ["a DEL is ignored", ["history"]],
  ["addresses of a silent node are freed", ["history", "observer"]],
  ["a member's retained address is not looked for", ["history"]],
  ["a member's address is released like a plain pod's", ["history"]],
];

it("nothing is found of the product as it is built", async () => {
  expect(await findFaultOnWire(undefined)).toEqual({});
});

it.for(NOTICED)("%s: noticed by %s", async ([fault, by]) => {
  const found = await findFaultOnWire(fault);
  for (const [observer, { seconds, text }] of Object.entries(found))
    console.log(`${fault}: ${observer} after ${seconds.toFixed(1)} s: ${text}`);
  expect(Object.keys(found)).toEqual(expect.arrayContaining([...by]));
});
