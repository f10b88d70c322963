/**
 * Tests the observer of the wire and the checker of histories: agents and controller have a fault of
 * simulation/faults/faults.ts, the course of course.ts runs, and each of the two says what it noticed first.
 *
 *   await findFaultOnWire("a DEL is ignored")   // { history: { seconds: 9.1, text: "…" } }
 *   await findFaultOnWire(undefined)            // {}: the product as it is built
 *
 * Effects: a control plane, agents, a controller, namespaces; ended at the end.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { STORED_AS_JSON } from "../history/stored.ts";
import { startControllerProcess } from "./controller-process.ts";
import { COURSE, runCourse } from "./course.ts";
import { followWorld } from "./followed-world.ts";
import { startPlane } from "./plane.ts";
import { applyWorkloadKinds } from "./workload-kinds.ts";
import { startWorld, type World } from "./world.ts";

/** The first finding of one of the two. */
export interface Noticed {
  /** After the beginning of the course. */
  readonly seconds: number;
  readonly text: string;
}

export interface Findings {
  observer?: Noticed;
  history?: Noticed;
}

/** A record that was deleted by hand is back before. */
const GRACE_MS = 6_000;
/** A pod without a NIC and without an object is collected before. */
const STALE_MS = 26_000;
/** The grace of the course's settings, and the controller's next look is later. */
const MIN_LOST_MS = 10_000;
/** A DEL that was spooled while the agent was away has been carried out before. */
const MAX_RELEASE_MS = 8_000;
const POLL_MS = 50;

export async function findFaultOnWire(fault: string | undefined): Promise<Findings> {
  const world = await startWorld({
    ...COURSE,
    startPlane: async () => {
      const plane = await startPlane({ serverArgs: [STORED_AS_JSON] });
      await applyWorkloadKinds(plane.client);
      return plane;
    },
    ...{ isObserved: true, graceMs: GRACE_MS, staleMs: STALE_MS, agent: { fault } },
  });
  const found: Findings = {};
  try {
    for (const name of COURSE.nodes) await world.setNode(name, "True");
    const kubeconfig = await world.controllerKubeconfig();
    const controller = await startControllerProcess({ kubeconfig, name: "course", fault });
    world.defer(() => controller.kill());
    await watch(world, found);
  } catch (error) {
    if (isEmpty(found)) throw error;
  } finally {
    // Both throw at the end what they have found.
    await world.stop().catch((error: unknown) => {
      if (isEmpty(found)) throw error;
    });
  }
  return found;
}

function isEmpty({ observer, history }: Findings): boolean {
  return observer === undefined && history === undefined;
}

async function watch(world: World, found: Findings): Promise<void> {
  const { history } = await followWorld(world, { maxReleaseMs: MAX_RELEASE_MS, minLostMs: MIN_LOST_MS });
  const end = new AbortController();
  const course = runCourse(world, end.signal).finally(() => end.abort());
  const startMs = nowMs();
  const lookAtHistory = async (): Promise<void> => {
    const [text] = history.checker.breaches;
    if (text !== undefined) found.history ??= { seconds: (nowMs() - startMs) / 1_000, text };
    await sleep(POLL_MS);
  };
  const lookAtObserver = async (): Promise<void> => {
    const [first] = (await world.wire.observer.take()).toSorted((one, other) => one.atMs - other.atMs);
    if (first !== undefined) found.observer ??= { seconds: (first.atMs - startMs) / 1_000, text: first.text };
  };
  const untilFound = async (look: () => Promise<void>, by: keyof Findings): Promise<void> => {
    while (found[by] === undefined && !end.signal.aborted) await look();
  };
  const both = Promise.all([untilFound(lookAtHistory, "history"), untilFound(lookAtObserver, "observer")]);
  await Promise.all([course, both.finally(() => end.abort())]);
  await history.caughtUp();
  await Promise.all([lookAtHistory(), lookAtObserver()]);
}

/** CLOCK_MONOTONIC, as the observer has it. */
function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
