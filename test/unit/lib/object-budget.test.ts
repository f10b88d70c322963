import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../../host/kubernetes/kube-api.ts";
import { Mirror } from "../../../host/kubernetes/mirror.ts";
import { keyOf } from "../../../host/kubernetes/object-key.ts";
import { openLog } from "../../../host/lib/log.ts";
import { MAX_OBJECT_LENGTH, MAX_UNUSED_NAMED, ObjectBudget } from "../../../host/lib/object-budget.ts";

/** An object's text, and the part that is left when it is not used. */
interface Value {
  readonly text: string;
  readonly isLess?: true;
}

const object = (key: string, kib: number, resourceVersion = "1"): KubeObject => {
  const [name, namespace] = key.split("/").reverse();
  return { metadata: { name, namespace, resourceVersion }, text: "x".repeat(kib * 512) };
};

const TOO_LONG = MAX_OBJECT_LENGTH / 512;

/** A budget of so many KiB, and two kinds: `pods` leave their identity, `nets` nothing. */
function open(totalKib: number) {
  const told: string[] = [];
  const changes: string[] = [];
  const onUnused = (namespace: string) => told.push(namespace);
  const budget = new ObjectBudget({ totalBytes: totalKib * 1_024, home: "berth", onUnused });
  const openKind = (name: string, reduce?: (value: Value) => Value) =>
    new Mirror<Value>({
      ...{ name, keyOf, log: openLog("test", "silent") },
      decode: ({ text }) => ({ text: String(text) }),
      onChange: ({ kind, key }) => changes.push(`${kind === "set" ? "+" : "-"}${key}`),
      budgeted: reduce === undefined ? { budget } : { budget, reduce },
    });
  const nets = openKind("nets");
  const pods = openKind("pods", () => ({ text: "", isLess: true }));
  const used = () =>
    [nets, pods].flatMap(({ items }) => [...items].map(([key, { isLess }]) => `${key}${isLess ? "-" : ""}`));
  const unused = () => budget.unused.map(({ collection, key, reason }) => `${collection} ${key} ${reason}`);
  return { budget, nets, pods, told, changes, used, unused };
}

describe("a budget of the heap", () => {
  it("tells of twenty namespaces, and of others how many there are", () => {
    const { nets, budget } = open(1_024);
    for (let at = 0; at < 23; at++) nets.set(object(`n${at}/large`, TOO_LONG));
    expect(budget.problems).toHaveLength(21);
    expect(budget.problems.at(-1)).toBe("Objects of 3 more namespaces are not used for the same reasons");
  });

  it("an object beyond the limit of one is not used, and others are", () => {
    const { nets, used, unused, budget } = open(1_024);
    nets.set(object("evil/large", TOO_LONG));
    nets.set(object("evil/small", 1));
    expect([used(), unused()]).toEqual([["evil/small"], ["nets evil/large size"]]);
    const problem = "Of namespace evil are not used: nets evil/large; each is longer than 262144 characters";
    expect(budget.problems).toEqual([problem]);
    nets.set(object("evil/large", 1, "2"));
    expect([used(), unused()]).toEqual([["evil/small", "evil/large"], []]);
    nets.set(object("evil/large", TOO_LONG, "3"));
    nets.delete(object("evil/large", TOO_LONG));
    expect([used(), unused()]).toEqual([["evil/small"], []]);
  });

  it("beyond the total the namespace that holds most gives way, over all kinds, its largest object first", () => {
    const { nets, pods, used, unused, told, changes } = open(20);
    nets.set(object("evil/a", 4));
    nets.set(object("evil/b", 6));
    pods.set(object("shop/a", 5));
    changes.length = 0;
    pods.set(object("shop/b", 4));
    expect([used(), unused()]).toEqual([["evil/a", "shop/a", "shop/b"], ["nets evil/b room"]]);
    expect(changes).toEqual(["-evil/b", "+shop/b"]);
    expect(told).toEqual(["evil"]);
  });

  it("the new object is the one that is not used if its own namespace holds most", () => {
    const { nets, used, unused, budget } = open(10);
    nets.set(object("shop/a", 2));
    nets.set(object("evil/a", 4));
    for (const name of ["b", "c"]) nets.set(object(`evil/${name}`, 5));
    expect(used()).toEqual(["shop/a", "evil/a"]);
    expect(unused()).toEqual(["nets evil/b room", "nets evil/c room"]);
    const problem = "Of namespace evil are not used: nets evil/b, nets evil/c; what tenants write ";
    expect(budget.problems[0]?.slice(0, problem.length)).toBe(problem);
  });

  it("the release's namespace never gives way", () => {
    const { nets, used } = open(10);
    for (const name of ["a", "b", "c"]) nets.set(object(`berth/${name}`, 5));
    nets.set(object("shop/a", 1));
    expect(used()).toEqual(["berth/a", "berth/b", "berth/c"]);
  });

  it("of an object that leaves something that is kept, and in the end nothing", () => {
    const { pods, used, unused, budget } = open(10);
    pods.set(object("evil/a", 4));
    pods.set(object("evil/b", 6));
    expect([used(), unused()]).toEqual([["evil/a", "evil/b-"], ["pods evil/b room"]]);
    for (let at = 0; at < 100; at++) pods.set(object(`evil/${at}`, 0));
    expect(budget.usedBytes).toBeLessThanOrEqual(10 * 1_024);
    expect(used().length).toBeLessThan(30);
  });

  it("of an object of which no less would be left nothing stays", () => {
    const { pods, used, budget } = open(2);
    pods.set(object("evil/a", 0));
    const { usedBytes } = budget;
    pods.set(object("evil/b", 0));
    pods.set(object("shop/a", 0.5));
    expect(used()).toEqual(["evil/b", "shop/a"]);
    pods.keepOnly(new Set(["evil/b"]));
    expect(budget.usedBytes).toBe(usedBytes);
  });

  it("objects without room are to be listed again when there is some, and no more than fits is used", () => {
    const { nets, used, unused } = open(20);
    nets.set(object("shop/a", 8));
    nets.set(object("evil/a", 9));
    const later = [object("evil/b", 8, "7"), object("evil/c", 3, "8")];
    for (const each of later) nets.set(each);
    expect([used(), nets.mayHaveRoom]).toEqual([["shop/a", "evil/a"], false]);
    nets.delete(object("evil/a", 9));
    expect(nets.mayHaveRoom).toBe(true);
    nets.forgetUnused();
    for (const each of later) nets.set(each);
    expect([used(), unused()]).toEqual([["shop/a", "evil/b"], ["nets evil/c room"]]);
  });

  it("one that is too long is no reason to list again", () => {
    const { nets } = open(20);
    nets.set(object("evil/large", TOO_LONG));
    expect(nets.mayHaveRoom).toBe(false);
  });

  it("names only so many, and all may have room when those do", () => {
    const { nets, pods, unused, budget } = open(3);
    nets.set(object("evil/first", 2));
    for (let at = 0; at <= MAX_UNUSED_NAMED; at++) nets.set(object(`evil/${at}`, 2));
    expect(unused()).toHaveLength(MAX_UNUSED_NAMED);
    expect(budget.problems[0]).toContain("nets evil/4 and 995 or more others; ");
    nets.delete(object("evil/first", 2));
    expect([nets.mayHaveRoom, pods.mayHaveRoom]).toEqual([true, false]);
  });

  it("room is given back: the same objects again and again fill nothing", () => {
    const { nets, budget, used } = open(20);
    for (let version = 1; version < 100; version++) nets.set(object("evil/a", version % 7, `${version}`));
    const { usedBytes } = budget;
    expect([used(), usedBytes < 3_000]).toEqual([["evil/a"], true]);
    nets.keepOnly(new Set());
    expect(budget.usedBytes).toBe(0);
  });
});
