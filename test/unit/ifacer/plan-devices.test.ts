/**
 * The ifacer's planners, case by case: lines of the existing state, requests, and the outcome of each. `npm run
 * generate` records the current outcomes; review them like code.
 */
import { join } from "node:path";
import { expect, it } from "vitest";
import { CniError } from "../../../host/cni/error.ts";
import { type DeviceSpec, decodeDeviceSpec } from "../../../host/ifacer/device-spec.ts";
import { needsTraffic, planDevices } from "../../../host/ifacer/plan-devices.ts";
import type { Operation } from "../../../host/plan/operation.ts";
import { EMPTY_NAMESPACE, type NamespaceState } from "../../../host/plan/state.ts";
import { formatOperation } from "../../../host/plan/text.ts";
import { differenceFrom } from "../../world/similar-lines.ts";
import { mac } from "../../world/values.ts";
import { describeVectors, linesOf, MARGIN } from "../../world/vectors.ts";
import { applyAll, describeMore, inventory, undoAll } from "./device-model.ts";
import { follow } from "./device-words.ts";

const FOLDER = join(import.meta.dirname, "../../vectors/ifacer");

function lineOf(operation: Operation): string {
  const more = "address" in operation ? describeMore(operation.address) : "";
  return `${formatOperation(operation)}${more}`;
}

/** Plans, does it on the values, and sees that this was all that there was to do, and that it can be undone. */
function outcomeOf(spec: DeviceSpec, before: NamespaceState): { lines: string[]; after: NamespaceState } {
  try {
    const { operations, lastly, warnings, device } = planDevices(spec, before);
    const after = applyAll(before, operations);
    expect(planDevices(spec, after).operations.map(formatOperation), "doing it again").toEqual([]);
    expect(inventory(undoAll(after, operations)), "undone").toEqual(inventory(before));
    expect(inventory(undoAll(after, lastly)), "what comes last has failed").toEqual(inventory(after));
    const lines = [
      `device: ${device}`,
      ...warnings.map((warning) => `warning: ${warning}`),
      ...operations.map(lineOf),
      ...lastly.map((operation) => `lastly ${formatOperation(operation)}`),
      ...(operations.length === 0 ? ["nothing to do"] : []),
    ];
    return { lines, after };
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    return { lines: [`refused: ${error.code} ${error.message}`], after: before };
  }
}

interface Replay {
  readonly text: readonly string[];
  /** Of each request, in full. */
  readonly outcomes: readonly (readonly string[])[];
}

/**
 * The case with its expected lines replaced by the outcome; with `ADD like NAME {…}` by its difference from the first
 * outcome in that file.
 */
function replay(file: string): Replay {
  let state = EMPTY_NAMESPACE;
  const outcomes: (readonly string[])[] = [];
  const answer = (line: string): readonly string[] => {
    const [, similar, facts] = /^ADD (?:like (\S+) )?(\{.*)$/.exec(line) ?? [];
    if (facts === undefined) {
      if (line !== "" && !line.startsWith("#")) state = follow(state, line);
      return [];
    }
    const { lines, after } = outcomeOf(decodeDeviceSpec(JSON.parse(facts), "x"), state);
    state = after;
    outcomes.push(lines);
    return similar === undefined ? lines : differenceFrom(replay(`${similar}.txt`).outcomes[0] ?? [], lines);
  };
  const given = linesOf(join(FOLDER, file)).filter((line) => !line.startsWith(MARGIN));
  return { text: given.flatMap((line) => [line, ...answer(line).map((each) => `${MARGIN}${each}`)]), outcomes };
}

describeVectors(FOLDER, 21, replay);

it.each([
  ["not: the kernel may not know it", "lacp_rate=fast;coupled_control=0", { numbers: { lacp_rate: 0 } }],
  ["if the kernel only hides it", "ad_user_port_key=7", { numbers: { ad_user_port_key: 0 } }],
  [
    "if it is the actor's system",
    "ad_actor_system=02:00:00:00:00:07",
    { numbers: {}, actorSystem: mac("00:00:00:00:00:00") },
  ],
])("an option that a bond does not report is set back %s (%s)", (_, options, wanted) => {
  const lines = ["link e0 device", "link bond0 bond mode 0 miimon 0 lacp_rate 0 down"];
  const bond = { name: "bond0", mode: 4, options };
  const spec = decodeDeviceSpec({ interfaces: ["e0"], bond }, "x");
  const { operations } = planDevices(spec, lines.reduce(follow, EMPTY_NAMESPACE));
  const froms = operations.flatMap((operation) => (operation.kind === "set-bond" ? [operation.from] : []));
  expect(froms).toStrictEqual([{ numbers: { mode: 0, miimon: 0, arp_interval: 0 } }, wanted]);
});

it.each([
  ["a member has yet to join", "e0 e1", true],
  ["the members have joined", "e0", false],
  ["a member is not there", "e0 e9", false],
  ["there is no bond", undefined, false],
])("addresses and routes are read when %s: %s", (_, members, wanted) => {
  const lines = ["link b0 bond mode 1", "link e0 device master b0", "link e1 device", "link e2 device master b1"];
  const bond = members === undefined ? {} : { bond: { name: "b0", mode: 1 } };
  const spec = decodeDeviceSpec({ interfaces: members?.split(" ") ?? ["e1"], ...bond }, "x");
  expect(needsTraffic(spec, lines.reduce(follow, EMPTY_NAMESPACE))).toBe(wanted);
});
