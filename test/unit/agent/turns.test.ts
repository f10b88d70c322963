import { expect, it } from "vitest";
import { Turns } from "../../../host/agent/coordinator/turns.ts";

function deferred(): { promise: Promise<string>; resolve: (text: string) => void; reject: (error: Error) => void } {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  return { promise, resolve, reject };
}

it("does what is asked for one container in order, and for others at once; a failure ends a turn, too", async () => {
  const turns = new Turns();
  const first = deferred();
  const begun: string[] = [];
  const work = (name: string, result: Promise<string>) => () => {
    begun.push(name);
    return result;
  };
  const one = turns.take("c1", work("one", first.promise));
  const two = turns.take("c1", work("two", Promise.resolve("2")));
  const other = turns.take("c2", work("other", Promise.resolve("o")));
  expect(await other).toBe("o");
  expect(begun).toEqual(["one", "other"]);
  first.reject(new Error("no"));
  await expect(one).rejects.toThrow("no");
  expect(await two).toBe("2");
  expect(begun).toEqual(["one", "other", "two"]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(turns.size).toBe(0);
});
