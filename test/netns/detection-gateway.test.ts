/** Gateway detection on the real kernel: gateways that answer at once, late, at last, or never. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { detectConflict } from "../../host/coordinator/detect-conflict.ts";
import { detectGateways, type GatewayProbe } from "../../host/coordinator/detect-gateway.ts";
import { formatIp } from "../../host/net/ip.ts";
import { ip } from "../world/values.ts";
import { capture } from "./detection-capture.ts";
import { type Lab, makeLab, never, type Pod, setSysctl, WINDOW_MS } from "./detection-lab.ts";
import { answer, playRival } from "./detection-rival.ts";

const INTERVAL_MS = 100;
/** Long enough that no second request is sent by chance. */
const SLOW_MS = 3_000;
const OWN = { 4: ip("10.6.0.70"), 6: ip("fd00::70") };

let lab: Lab;
let pod: Pod;
let child: Pod;
let gateway: Pod;
let scripted: Pod;

beforeAll(() => {
  lab = makeLab("bkdg");
  pod = lab.addPod();
  child = lab.addPod({ kind: "macvlan" });
  scripted = lab.addPod();
  gateway = lab.addPod({ addresses: ["10.6.0.1/24", "fd00::1/64"], ipv6: true });
});

afterAll(() => lab[Symbol.dispose]());

async function ask({ link }: Pod, addresses: readonly string[], options: Partial<GatewayProbe> = {}) {
  const start = performance.now();
  const targets = addresses.map(ip).map((one) => ({ gateway: one, own: OWN[one.family] }));
  const times = { retry: 3, intervalMs: INTERVAL_MS, timeoutMs: INTERVAL_MS };
  const unreachable = await detectGateways({ link, targets, ...times, signal: never, ...options });
  return { unreachable: unreachable.map(formatIp), ms: performance.now() - start };
}

describe("a gateway that answers", () => {
  it.each([
    ["10.6.0.1", () => pod],
    ["fd00::1", () => pod],
    ["10.6.0.1", () => child],
    ["fd00::1", () => child],
  ] as const)("%s: ends its asking at once", async (address, asker) => {
    const { unreachable, ms } = await ask(asker(), [address], { intervalMs: SLOW_MS, timeoutMs: SLOW_MS });
    expect(unreachable).toEqual([]);
    expect(ms).toBeLessThan(SLOW_MS / 2);
  });

  it("with strict settings of its own, to questions and to probes", async () => {
    for (const [key, value] of Object.entries({ arp_ignore: 2, arp_announce: 2, arp_filter: 1, rp_filter: 1 })) {
      setSysctl(gateway.netns, `ipv4/conf/eth0/${key}`, String(value));
    }
    expect((await ask(pod, ["10.6.0.1"])).unreachable).toEqual([]);
    expect((await ask(pod, ["10.6.0.1"], { pendingConflict: new Promise(() => {}) })).unreachable).toEqual([]);
  });
});

describe("a gateway that does not answer", () => {
  it("is asked `retry` times, `interval` apart, and the last time has `timeout`", async () => {
    for (const address of ["10.6.0.2", "fd00::2"]) {
      using silent = playRival(scripted, [address], () => {});
      const { unreachable, ms } = await ask(pod, [address], { retry: 2, timeoutMs: 250 });
      expect(unreachable).toEqual([address]);
      expect(silent.received).toHaveLength(2);
      expect(ms).toBeGreaterThanOrEqual(INTERVAL_MS + 250);
      expect(ms).toBeLessThan(INTERVAL_MS + 250 + 2_000);
    }
  });

  it("is named beside those that do, which are not asked again", async () => {
    using silent = playRival(scripted, ["10.6.0.2", "fd00::2"], () => {});
    const wire = await capture(lab, pod.port);
    const { unreachable } = await ask(pod, ["10.6.0.2", "10.6.0.1", "fd00::2", "fd00::1"]);
    expect(unreachable).toEqual(["10.6.0.2", "fd00::2"]);
    expect(silent.received).toHaveLength(6);
    const frames = await wire.read(pod.link.mac);
    expect(frames.filter((frame) => /who-has 10\.6\.0\.1 |who has fd00::1 /.test(frame))).toHaveLength(2);
    expect(frames).toHaveLength(8);
  });
});

describe.each(["10.6.0.3", "fd00::3"])("the gateway %s", (address) => {
  it("that answers only the third question is there", async () => {
    using late = playRival(scripted, [address], ({ target, from, before }, { send }) => {
      if (before === 2) send(target.family, answer(scripted.link.mac, from, target));
    });
    const { unreachable, ms } = await ask(pod, [address]);
    expect(unreachable).toEqual([]);
    expect(late.received).toHaveLength(3);
    expect(ms).toBeGreaterThanOrEqual(2 * INTERVAL_MS - 2);
  });

  it("that answers without its MAC in the answer is there", async () => {
    using _plain = playRival(scripted, [address], ({ target, from }, { send }) => {
      send(target.family, answer(scripted.link.mac, from, target, { withOption: false }));
    });
    expect((await ask(pod, [address])).unreachable).toEqual([]);
  });
});

describe("while the own address is in doubt", () => {
  const OWN_SENDER = /tell 10\.6\.0\.70|fd00::70 >|source link-address option/;

  it("no frame carries it as sender; afterwards the question comes from it", async () => {
    using silent = playRival(scripted, ["10.6.0.2", "fd00::2"], () => {});
    const wire = await capture(lab, pod.port);
    const conflict = Promise.withResolvers<void>();
    // The doubt ends before the third question is due.
    const outcome = ask(pod, ["10.6.0.2", "fd00::2"], {
      pendingConflict: conflict.promise,
      intervalMs: 10 * INTERVAL_MS,
    });
    await expect.poll(() => silent.received.length, { interval: 2, timeout: 30_000 }).toBe(4);
    conflict.resolve();
    expect((await outcome).unreachable).toEqual(["10.6.0.2", "fd00::2"]);
    const frames = await wire.read(pod.link.mac);
    expect(frames.map((frame) => OWN_SENDER.test(frame))).toEqual([false, false, false, false, true, true]);
    expect(frames[4]).toMatch(/who-has 10\.6\.0\.2 tell 10\.6\.0\.70/);
    expect(frames[5]).toMatch(/fd00::70 > ff02::1:ff00:2: .* who has fd00::2 source link-address option/);
  });

  it("a doubt that ends in an error is over, too", async () => {
    using silent = playRival(scripted, ["10.6.0.2"], () => {});
    await ask(pod, ["10.6.0.2"], { pendingConflict: Promise.reject(new Error("conflict")) });
    expect(silent.received.map(({ packet }) => "operation" in packet && packet.senderIp)).toEqual([
      OWN[4],
      OWN[4],
      OWN[4],
    ]);
  });

  it("conflict and gateway together take one window, and the gateway knows nothing of us before it is over", async () => {
    gateway.ip("neigh flush dev eth0");
    const start = performance.now();
    const free = detectConflict({
      link: pod.link,
      addresses: [OWN[4], OWN[6]],
      windowMs: 5 * WINDOW_MS,
      random: Math.random,
      signal: never,
    });
    const [conflict, { unreachable }] = await Promise.all([
      free,
      ask(pod, ["10.6.0.1", "fd00::1"], { pendingConflict: free }),
    ]);
    expect(conflict).toBeUndefined();
    expect(unreachable).toEqual([]);
    expect(performance.now() - start).toBeLessThan(9 * WINDOW_MS);
    expect(gateway.ip("neigh show dev eth0")).not.toMatch(/10\.6\.0\.70|fd00::70/);
  });
});

describe("a link", () => {
  it("that goes down is an error; one that loses its carrier for a moment can", async () => {
    const doomed = lab.addPod();
    const outcome = ask(doomed, ["10.6.0.2"], { timeoutMs: 20_000 });
    setTimeout(() => doomed.ip("link set eth0 down"), 20);
    await expect(outcome).rejects.toMatchObject({ name: "DetectionError", reason: "link" });

    const shaky = lab.addPod();
    lab.ip(lab.switch, `link set ${shaky.port} down`);
    const waiting = ask(shaky, ["10.6.0.1"], { retry: 20 });
    setTimeout(() => lab.ip(lab.switch, `link set ${shaky.port} up`), 150);
    expect((await waiting).unreachable).toEqual([]);

    lab.ip(lab.switch, `link set ${gateway.port} down`);
    const patient = ask(shaky, ["10.6.0.1"], { retry: 20 });
    setTimeout(() => lab.ip(lab.switch, `link set ${shaky.port} down`), 50);
    setTimeout(() => lab.ip(lab.switch, `link set ${gateway.port} up`), 100);
    setTimeout(() => lab.ip(lab.switch, `link set ${shaky.port} up`), 150);
    expect((await patient).unreachable).toEqual([]);
  });

  it("and a request that is given up: it ends at once", async () => {
    const signal = AbortSignal.abort();
    await expect(ask(pod, ["10.6.0.1"], { signal })).rejects.toMatchObject({ reason: "aborted" });
  });
});
