import { expect, it } from "vitest";
import type { SeenOwner } from "../../../../host/registry/journal.ts";
import { SeenOwners } from "../../../../host/registry/kubernetes/seen-owners.ts";
import type { Workload } from "../../../../host/resources/member.ts";
import { openDisk, openMemoryJournal } from "../../../fakes/memory-journal.ts";
import { recordLog } from "../../../world/recorded-log.ts";

const WEB: Workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "u1", member: "web-0" };

const OPTIONS = {
  ...{ bootId: "boot", nowMs: () => 0, onFreed: () => {} },
  cooldowns: { defaultMs: 0, byPool: new Map() },
};

/** `answers` are the results of reading an owner, in order; the last one again and again. */
function open(disk = openDisk(), ...answers: readonly (boolean | Error)[]) {
  const reads: string[] = [];
  const readOwner = async ({ kind, namespace, name, uid }: Workload): Promise<boolean> => {
    const answer = answers[Math.min(reads.length, answers.length - 1)] ?? true;
    reads.push(`${kind} ${namespace}/${name} ${uid}`);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const journal = openMemoryJournal(disk, OPTIONS);
  return { owners: new SeenOwners({ journal, live: { readOwner }, log: recordLog().log }), reads };
}

it("retention: an owner is read once, however many of its members are claimed for, also at once", async () => {
  const { owners, reads } = open();
  expect(owners.isSeen(WEB)).toBeUndefined();
  await Promise.all([owners.read(WEB), owners.read({ ...WEB, member: "web-1" })]);
  await owners.read(WEB);
  expect([owners.isSeen(WEB), reads]).toEqual([true, ["StatefulSet shop/web u1"]]);
});

it.each<[what: string, change: Partial<Workload>]>([
  ["UID", { uid: "u2" }],
  ["name", { name: "ghost" }],
  ["namespace", { namespace: "evil" }],
  ["kind", { kind: "VirtualMachine" }],
])("retention: one of another %s is another owner: what a pod says of it concerns no other", async (_, change) => {
  const { owners, reads } = open(openDisk(), false, true);
  await owners.read({ ...WEB, ...change });
  await owners.read(WEB);
  expect([owners.isSeen({ ...WEB, ...change }), owners.isSeen(WEB), reads.length]).toEqual([false, true, 2]);
});

it("retention: an owner that could not be read or was not there is read again: its kind may be listed again", async () => {
  const { owners, reads } = open(openDisk(), new Error("no answer"), false, false, true);
  const seen = await Array.fromAsync([1, 2, 3], () => owners.read(WEB).then(() => owners.isSeen(WEB)));
  owners.forgetMissing();
  seen.push(owners.isSeen(WEB));
  await owners.read(WEB);
  expect([seen, owners.isSeen(WEB), reads.length]).toEqual([[undefined, false, false, undefined], true, 4]);
});

it("retention: the journal remembers seen owners, and missing ones", async () => {
  const disk = openDisk();
  const before = open(disk, true, false);
  await before.owners.read(WEB);
  await before.owners.read({ ...WEB, uid: "ghost" });
  const after = open(disk);
  await after.owners.open();
  await after.owners.read(WEB);
  const seen = [WEB, { ...WEB, uid: "ghost" }].map((owner) => after.owners.isSeen(owner));
  expect([seen, after.reads]).toEqual([[true, false], []]);
});

it("the journal forgets the oldest owners first", async () => {
  const journal = openMemoryJournal(openDisk(), OPTIONS);
  for (let at = 0; at < 4_100; at++) await journal.noteOwner(`${at}`, true);
  const found: readonly SeenOwner[] = await journal.readOwners();
  expect([found.length, found[0]?.key, found.at(-1)?.key]).toEqual([4_096, "4", "4099"]);
});
