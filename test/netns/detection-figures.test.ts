/** How long detection takes: silence, a conflict, and fifty pods at once. The figures are printed; the assertions leave wide room. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { withQuietLink } from "../../host/coordinator/quiet-link.ts";
import { conflictOf, detect, type Lab, makeLab, never, type Pod, WINDOW_MS } from "./detection-lab.ts";

const PODS = 50;

let lab: Lab;
let pods: Pod[];
let owner: Pod;

beforeAll(() => {
  lab = makeLab("bkdf");
  owner = lab.addPod({ addresses: ["10.6.0.1/24", "fd00::1/64"], ipv6: true });
  pods = Array.from({ length: PODS }, (_, index) => lab.addPod({ kind: index % 2 === 0 ? "veth" : "macvlan" }));
});

afterAll(() => lab[Symbol.dispose]());

function quantiles(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`;
}

async function repeat(rounds: number, work: () => Promise<number>): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) times.push(await work());
  return times;
}

it("a conflict on a veth", async () => {
  const [pod = expect.unreachable()] = pods;
  for (const address of ["10.6.0.1", "fd00::1"]) {
    const times = await repeat(100, async () => {
      const { conflict, ms } = await detect(pod, [address]);
      expect(conflict).toEqual(conflictOf(address, owner));
      return ms;
    });
    console.log(
      `conflict with ${address}, from call to result: ${quantiles(times)}; the first ${times[0]?.toFixed(1)} ms`,
    );
    expect(Math.min(...times)).toBeLessThan(50);
  }
});

it("silence", async () => {
  const [pod = expect.unreachable()] = pods;
  const times = await repeat(10, async () => (await detect(pod, ["10.6.0.70", "fd00::70"])).ms);
  console.log(`silence, window ${WINDOW_MS} ms: ${quantiles(times)}`);
  for (const ms of times) expect(ms).toBeGreaterThanOrEqual(WINDOW_MS);
});

it("fifty pods at once, each with addresses of its own", async () => {
  const outcomes = await Promise.all(pods.map((pod, index) => detect(pod, [`10.6.1.${index}`, `fd00::1:${index}`])));
  console.log(`${PODS} at once, silent, window ${WINDOW_MS} ms: ${quantiles(outcomes.map(({ ms }) => ms))}`);
  expect(outcomes.map(({ conflict }) => conflict)).toEqual(pods.map(() => undefined));
});

it("fifty pods at once, each through a link that is raised for it", async () => {
  const fresh = Array.from({ length: PODS }, () => lab.addPod({ kind: "macvlan", ipv6: true, up: false }));
  const times = await Promise.all(
    fresh.map(async (pod, index) => {
      const start = performance.now();
      await withQuietLink(
        { netnsPath: pod.link.netnsPath, ifName: "eth0", staysUp: true },
        () => detect(pod, [`10.6.2.${index}`, `fd00::2:${index}`]),
        never,
      );
      return performance.now() - start;
    }),
  );
  console.log(`${PODS} at once, silent, through a link that is raised and stays up: ${quantiles(times)}`);
  expect(times).toHaveLength(PODS);
});

it("fifty pods at once for the same address: at most one finds it free", async () => {
  for (const address of ["10.6.3.1", "fd00::3:1"]) {
    const outcomes = await Promise.all(pods.map((pod) => detect(pod, [address])));
    const free = outcomes.filter(({ conflict }) => conflict === undefined).length;
    console.log(`${PODS} at once for ${address}: ${free} free; ${quantiles(outcomes.map(({ ms }) => ms))}`);
    expect(free).toBeLessThanOrEqual(1);
  }
});
