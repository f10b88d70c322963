/**
 * The agent's cost of noticing foreign changes: while a service proxy rewrites its rules, and while nothing happens.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ChainNode, makeChainNode } from "../lab/netns/coordinator.ts";

const NETWORK = `nrc${process.pid}`;
const SERVICES = 5_000;
const SECONDS = 30;
/** Largest share of one processor. */
const MOST = 0.01;
/** Clock ticks a second of /proc/PID/stat on all architectures that Linux supports. */
const TICKS = 100;

let node: ChainNode;

beforeAll(async () => {
  node = await makeChainNode("nrc");
  await node.begin(NETWORK);
});
afterAll(() => node.delete());

/** Processor time of the agent so far: seconds. */
function usedSeconds(): number {
  const fields = readFileSync(`/proc/${node.agent.pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** Times that the agent's main thread went to sleep, so at least as often as it woke up. */
function wakeUps(): number {
  return Number(/^voluntary_ctxt_switches:\t(\d+)/m.exec(readFileSync(`/proc/${node.agent.pid}/status`, "utf8"))?.[1]);
}

async function measure(work: () => Promise<void>): Promise<{ share: number; wakeUps: number }> {
  const [used, woken, startMs] = [usedSeconds(), wakeUps(), performance.now()];
  await work();
  const seconds = (performance.now() - startMs) / 1_000;
  return { share: (usedSeconds() - used) / seconds, wakeUps: ((wakeUps() - woken) * 60) / seconds };
}

it(`a proxy that rewrites ${SERVICES} services every second costs less than one hundredth of a processor`, () =>
  node.withPod("served", async (pod) => {
    await pod.attach(NETWORK);
    await sleep(10_000); // the start is over
    const idle = await measure(() => sleep(SECONDS * 1_000));
    const elements = Array.from({ length: SERVICES }, (_, at) => `10.96.${at >> 8}.${at & 255} : 10.1.0.1`).join(",");
    const make = "add table ip proxy; add map ip proxy services { type ipv4_addr : ipv4_addr; }\n";
    const rewrite = `${make}flush map ip proxy services\nadd element ip proxy services { ${elements} }\n`;
    let rewritten = 0;
    const busy = await measure(async () => {
      for (const endMs = performance.now() + SECONDS * 1_000; performance.now() < endMs; rewritten++) {
        const { exitCode, stderr } = await node.netns.exec(["nft", "-f", "-"], { stdin: rewrite });
        expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
        await sleep(1_000);
      }
    });
    const percent = (share: number) => `${(share * 100).toFixed(2)} %`;
    console.log(
      `Agent: idle ${percent(idle.share)} of a processor, ${idle.wakeUps.toFixed(0)} wake-ups a minute; ` +
        `${rewritten} rewrites of ${SERVICES} services ${percent(busy.share)}, ${busy.wakeUps.toFixed(0)} wake-ups a minute`,
    );
    expect(busy.share - idle.share).toBeLessThan(MOST);
    await pod.detach(NETWORK);
  }));
