/** The observer's checker: timelines of rounds and writes made by hand, and what is found in them. */
import { expect, it } from "vitest";
import { type AddressRecord, type Round, SegmentChecker } from "../../lab/observer/segment-checker.ts";
import { cases } from "../../world/rows.ts";

const IP = "10.6.0.7";
const A = "02:00:00:00:00:0a";
const ROUND_MS = 200;
const GRACE_MS = 5_000;

const bound = (...holders: string[]): AddressRecord => ({ state: "Bound", holders, text: holders.join() });
const state = (name: string): AddressRecord => ({ state: name, holders: [], text: "" });

type Nic = Round["nics"][number];
const nic = (netns: string, mac: string, isUp: 0 | 1 = 1, address = IP): Nic => [netns, "eth0", mac, address, isUp];

interface Scene {
  /** Number of rounds that it lasts. */
  readonly rounds: number;
  /** At its start; null: deleted, absent: unchanged. */
  readonly record?: AddressRecord | null;
  readonly nics?: readonly Nic[];
  /** Which MACs answer for IP. */
  readonly answers?: readonly string[];
  readonly asked?: readonly string[];
  /** Which pod a namespace is of is known: its name is the pod's. */
  readonly knowsPods?: true;
}

function play(scenes: readonly Scene[]): string[] {
  const podOf = (netns: string): string => netns;
  const checker = new SegmentChecker({ graceMs: GRACE_MS, ...(scenes[0]?.knowsPods && { podOf }) });
  let atMs = 1_000_000;
  for (const { rounds, record, nics = [], answers = [], asked = [IP] } of scenes) {
    if (record !== undefined) checker.write(atMs, IP, record ?? undefined);
    for (let index = 0; index < rounds; index++) {
      const heard = answers.map((mac): [string, string] => [IP, mac]);
      checker.round({ atMs, cpuMs: 0, asked, answers: heard, nics });
      atMs += ROUND_MS;
    }
  }
  return checker.take().map(({ kind, text }) => `${kind} ${text}`);
}

const LONG = GRACE_MS / ROUND_MS + 2;
const SHORT = GRACE_MS / ROUND_MS - 2;
const alive: Scene = { rounds: 5, record: bound("a"), nics: [nic("a", A)], answers: [A] };

it.each(cases<Scene[]>`
  an address that is released and answers on ${[alive, { ...alive, rounds: LONG, record: state("Cooling") }]}
    => ^unrecorded
  the same while the record goes from Cooling to none: one time, one finding ${[alive, { ...alive, rounds: SHORT, record: state("Cooling") }, { ...alive, rounds: SHORT, record: null }]}
    => ^unrecorded
  a NIC with an address that no record has, though it is down ${[{ rounds: LONG, nics: [nic("a", A, 0)] }]}
    => ^unrecorded: .*\(a eth0\)
  an address whose record goes to another pod while the first has it ${[alive, { ...alive, rounds: LONG, record: bound("b") }]}
    => ^foreign: .*02:00:00:00:00:0a \(a eth0\) for 5\.0 s; record: Bound b
  a NIC that comes when the record is another's, with a known pod ${[{ rounds: LONG, record: bound("b"), nics: [nic("a", A)], answers: [A], knowsPods: true }]}
    => ^foreign
  a pod that has lost its address ${[alive, { rounds: LONG, nics: [nic("a", A, 1, "")] }]} => ^lost: .*\(a eth0\)
`)("%s", (_, scenes, wanted) => {
  const found = play(scenes).map((text) => text.replace(/^\w+ /, ""));
  expect(found).toEqual(wanted.split(" & ").map((text) => expect.stringMatching(new RegExp(text))));
});
