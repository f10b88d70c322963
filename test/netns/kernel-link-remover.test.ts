/**
 * Links deleted in a thread of its own, on the real kernel: gone when it says so, and the event loop goes on meanwhile.
 */
import { execFileSync } from "node:child_process";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { LinkRemover } from "../../host/kernel/link-remover.ts";
import { createLink, setLink } from "../../host/kernel/netlink/link/requests.ts";
import { linkIn, makeRoom, type Room } from "./kernel-room.ts";

let room: Room;
const open: LinkRemover[] = [];

/** Closed after the test. */
function remover(path = `/run/netns/${room.near}`): LinkRemover {
  const one = new LinkRemover(path);
  open.push(one);
  return one;
}

function makeVeth(name: string): number {
  createLink(room.here, { name, kind: { kind: "veth" }, up: true, peer: { name: `p${name}` } });
  return linkIn(room.here, name).index;
}

const linkNames = (): string[] => room.json(room.near, "link").map(({ ifname }: { ifname: string }) => ifname);

beforeAll(() => {
  room = makeRoom("bkd");
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

afterAll(() => {
  room[Symbol.dispose]();
});

it("a veth is gone with its other end when the deletion resolves; a second deletion finds nothing", async () => {
  const one = remover();
  const index = makeVeth("v0");
  expect(linkNames()).toEqual(["lo", "pv0", "v0"]);
  await expect(one.removeLink(index)).resolves.toBe(true);
  expect(linkNames()).toEqual(["lo"]);
  await expect(one.removeLink(index)).resolves.toBe(false);
});

it("several links go in one step, and others stay", async () => {
  const one = remover();
  const links = ["v0", "v1", "v2", "v3"].map(makeVeth);
  const three = links.slice(0, 3);
  await expect(one.removeLinks([...three, 777])).resolves.toBe(true);
  expect(linkNames()).toEqual(["lo", "pv3", "v3"]);
  await expect(one.removeLinks(three)).resolves.toBe(false);
  await expect(one.removeLinks([])).resolves.toBe(false);
  await one.removeLink(links[3] ?? 0);
});

it("if one of several cannot be deleted, the others are", async () => {
  const one = remover();
  const lo = linkIn(room.here, "lo").index;
  await expect(one.removeLinks([makeVeth("v0"), makeVeth("v1"), lo])).rejects.toThrow(/^Cannot delete link 1: /);
  expect(linkNames()).toEqual(["lo"]);
  await expect(one.removeLinks([makeVeth("v0"), makeVeth("v1")])).resolves.toBe(true); // beside a foreign link in the group
  expect(linkNames()).toEqual(["lo"]);
  setLink(room.here, lo, { group: 0 });
});

it("two at a time for one link: one of them did it", async () => {
  const one = remover();
  const index = makeVeth("v0");
  expect((await Promise.all([one.removeLink(index), one.removeLink(index)])).sort()).toEqual([false, true]);
});

it("a refusal of the kernel is reported in its words, and the thread continues", async () => {
  const one = remover();
  await expect(one.removeLink(linkIn(room.here, "lo").index)).rejects.toThrow(/^Cannot delete link 1: .*\(E[A-Z]+\)/);
  await expect(one.removeLink(makeVeth("v0"))).resolves.toBe(true);
});

it("when its thread dies, open questions fail, and the next one starts another", async () => {
  const name = `bkdr${process.pid}`;
  const one = remover(`/run/netns/${name}`);
  const requests = [one.removeLink(7), one.removeLink(8)];
  for (const answer of requests) {
    await expect(answer).rejects.toThrow(
      `The thread that deletes links ended: Cannot open network namespace "/run/netns/${name}"`,
    );
  }
  execFileSync("ip", ["netns", "add", name]);
  await expect(one.removeLink(777)).resolves.toBe(false);
  execFileSync("ip", ["netns", "del", name]);
});

it("closing waits for deletions under way; afterwards nothing is deleted", async () => {
  const one = remover();
  const index = makeVeth("v0");
  const removal = one.removeLink(index);
  await one.close();
  await expect(removal).resolves.toBe(true);
  await expect(one.removeLink(index)).rejects.toThrow("The link remover is closed");
  await one.close();
  await remover().close(); // that was never used
});

it("a process that has nothing else to do ends, with a thread that has nothing to do", () => {
  const program = `
    import { LinkRemover } from "./host/kernel/link-remover.ts";
    const remover = new LinkRemover("/run/netns/${room.near}");
    console.log(await remover.removeLink(777));`;
  expect(execFileSync(process.execPath, ["-e", program], { timeout: 30_000 }).toString()).toBe("false\n");
});

it("the event loop runs while the kernel takes its time", async () => {
  const one = remover();
  await one.removeLink(777); // the thread is there
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const times: number[] = [];
  delay.enable();
  for (let round = 0; round < 10; round++) {
    const index = makeVeth(`v${round}`);
    const start = performance.now();
    await one.removeLink(index);
    times.push(performance.now() - start);
  }
  delay.disable();
  const median = times.sort((a, b) => a - b)[5] ?? Number.NaN;
  console.log(
    `remove a veth: p50 ${median.toFixed(1)} ms; event loop p50 ${(delay.percentile(50) / 1e6).toFixed(1)} ms`,
  );
  expect(delay.percentile(50) / 1e6).toBeLessThan(median);
});
