import { expect, it, onTestFinished, vi } from "vitest";
import type { KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { Mirror } from "../../../host/kubernetes/mirror.ts";
import { keyOf } from "../../../host/kubernetes/object-key.ts";
import { openLog } from "../../../host/lib/log.ts";

/**
 * `say` is the object's decoded value; without one it is not wanted, and "!" is refused. `changes`: `+a=x` for set,
 * `-a` for gone; `before`: earlier values that `decode` was given.
 */
function open() {
  const [changes, before]: [string[], (string | undefined)[]] = [[], []];
  const mirror = new Mirror<string>({
    ...{ name: "things", keyOf, log: openLog("test", "silent") },
    decode: ({ say }, former) => {
      before.push(former);
      if (say === "!") throw new Error("refused");
      return typeof say === "string" ? say : undefined;
    },
    onChange: (change) => changes.push(change.kind === "set" ? `+${change.key}=${change.value}` : `-${change.key}`),
  });
  return { mirror, changes, before };
}

const object = (name: string, resourceVersion: string, say?: string): KubeObject => ({
  metadata: { name, resourceVersion },
  say,
});

it("an object that is not wanted counts as not there, and nothing of it is kept", () => {
  const { mirror, changes } = open();
  expect([mirror.set(object("a", "1")), mirror.set(object("b", "2", "x"))]).toEqual([undefined, "b"]);
  expect([changes, [...mirror.items.keys()], mirror.newest()]).toEqual([["+b=x"], ["b"], { key: "b", version: "2" }]);
  mirror.delete(object("a", "3"));
  expect(changes).toEqual(["+b=x"]);
});

it("an object that could not be used and is wanted no more is no problem any more", () => {
  const { mirror } = open();
  mirror.set(object("a", "1", "!"));
  expect([mirror.problems, [...mirror.unknown]]).toEqual([["Of things, a cannot be used: refused"], ["a"]]);
  expect(mirror.set(object("a", "2"))).toBeUndefined();
  expect([mirror.problems, [...mirror.unknown]]).toEqual([[], []]);
});

it("the decoder gets the object's last state while it existed", () => {
  const { mirror, before } = open();
  for (const [index, say] of ["x", "y", "!", "z", undefined, "x"].entries())
    mirror.set(object("a", `${index + 1}`, say));
  expect(before).toEqual([undefined, "x", "y", "y", "z", undefined]);
});

it("the same version again changes nothing, also if it could not be used; a forgotten one does", () => {
  const { mirror, changes, before } = open();
  for (const say of ["x", "x"]) mirror.set(object("a", "1", say));
  for (const say of ["!", "!"]) mirror.set(object("a", "2", say));
  expect([changes, before]).toEqual([["+a=x"], [undefined, "x"]]);
  // Back to the version of the value that stayed: the server has it anew.
  mirror.set(object("a", "1", "y"));
  mirror.forgetVersions();
  expect(mirror.newest()).toBeUndefined();
  mirror.set(object("a", "1", "z"));
  expect([changes, mirror.newest()]).toEqual([["+a=x", "+a=y", "+a=z"], { key: "a", version: "1" }]);
});

it("objects that are not among the keys to keep are gone, also those that could not be used", () => {
  const { mirror, changes } = open();
  for (const [index, name] of ["a", "b", "c"].entries())
    mirror.set(object(name, `${9 + index}`, name === "c" ? "!" : "x"));
  expect(mirror.newest()).toEqual({ key: "c", version: "11" });
  mirror.keepOnly(new Set(["a"]));
  expect([changes.slice(2), mirror.problems, mirror.newest()]).toEqual([["-b"], [], { key: "a", version: "9" }]);
});

it("an object that ends is replaced by the rest of it, or gone, also where clocks are set meanwhile", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "Date"], now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const changes: string[] = [];
  const mirror = new Mirror<string>({
    ...{ name: "things", keyOf, log: openLog("test", "silent"), decode: ({ say }) => String(say) },
    ending: (value) => (value === "left" ? undefined : { atMs: Number(value), left: value < "5" ? undefined : "left" }),
    onChange: ({ key }) => changes.push(`${Date.now()} ${key}=${mirror.items.get(key) ?? ""}`),
  });
  for (const [at, say] of ["400000", "500000", "-1"].entries()) mirror.set(object(`a${at}`, `${at}`, say));
  mirror.set(object("later", "8", "300000"));
  mirror.set(object("later", "9", "9000000"));
  vi.setSystemTime(390_000);
  vi.advanceTimersByTime(200_000);
  const early = ["0 a0=400000", "0 a1=500000", "0 later=300000", "0 later=9000000"];
  expect(changes).toEqual([...early, "450000 a0=", "500000 a1=left"]);
  expect(mirror.set(object("a1", "1", "500000"))).toBe("a1");
  expect(mirror.set(object("a0", "0", "400000"))).toBeUndefined();
  expect(changes).toHaveLength(6);
});
