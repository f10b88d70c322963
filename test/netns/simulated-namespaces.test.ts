/** The simulation's model of namespaces and links gives the answers that the kernel gives to the product. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { KERNEL_NICS, type NicAccess } from "../../host/agent/fences/orphan-nics.ts";
import { Namespaces, type Nic, type Paths, type Segment } from "../simulation/namespaces.ts";
import { SimulatedTime } from "../simulation/simulated-time.ts";
import { Timeline } from "../simulation/timeline.ts";
import { ip, mac } from "../world/values.ts";
import { type Lab, makeLab, type Pod } from "./detection-lab.ts";

const ADDRESS = "10.7.0.60";

let lab: Lab;
beforeAll(() => {
  lab = makeLab("bksn");
});
afterAll(() => lab[Symbol.dispose]());

const SEGMENT: Segment = {
  ...{ onUp: () => {}, onDown: () => {}, onTaken: () => {}, onReleasing: () => {}, onReleased: () => {} },
  ...{ macOf: () => undefined, loseJournal: () => {}, copyJournal: () => {}, restoreJournal: () => {}, boot: () => {} },
};

/** One sandbox, with a NIC as its ADD made it. */
function simulate(paths: Paths): { readonly namespaces: Namespaces; readonly nic: Nic } {
  const time = new SimulatedTime(1);
  const timeline = new Timeline(() => time.nowMs);
  const namespaces = new Namespaces({ machine: "n1", time, timeline, segment: SEGMENT, paths });
  namespaces.add("c1");
  const nic: Nic = {
    ...{ machine: "n1", pod: "a", uid: "u1", containerId: "c1", ifName: "eth0", network: "lan", link: "eth0" },
    ...{ addresses: new Set<string>(), mac: mac("02:00:00:00:00:60"), sinceMs: 0, isReleased: false },
  };
  namespaces.sandboxes.get("c1")?.set("eth0", nic);
  namespaces.bringUp(nic, [ADDRESS]);
  return { namespaces, nic };
}

const OTHER = { owner: "u9", containerId: "c9", ifName: "eth0", ip: ip(ADDRESS) };

/** `isOther`: the row means another namespace than the one at the path now. */
async function ask(nics: NicAccess, netns: string, { hasMachine = false, hasCookie = true, isOther = false } = {}) {
  const found = nics.readCookie(netns);
  const netnsCookie = !hasCookie ? undefined : isOther || found === undefined ? 0xffff_ffffn : found;
  const row = { netns, netnsCookie, ifName: "eth0", ip: ip(ADDRESS) };
  const before = await nics.readNetnsStatus(row);
  const searches = [nics.findNetns({ ...OTHER, netns: undefined }, []), nics.findNetns(OTHER, [netns])];
  const candidates = searches.map((each) => each.kind === "unknown" && each.candidates.includes(netns));
  const fenced = nics.fenceNics({ netns, netnsCookie, ips: [row.ip], hasMachine })?.toSorted();
  return { before, candidates, fenced, after: await nics.readNetnsStatus(row) };
}

interface Case {
  readonly what: string;
  readonly lines: readonly string[];
  /** The link that has the address then. */
  readonly link: string | undefined;
}

const CASES: readonly Case[] = [
  { what: "as its ADD made it", lines: [], link: "eth0" },
  {
    what: "renamed",
    lines: ["link set eth0 down", "link set eth0 name eth0-old", "link set eth0-old up"],
    link: "eth0-old",
  },
  {
    what: "with its address on another link",
    lines: ["link add br0 type bridge", `addr del ${ADDRESS}/24 dev eth0`, `addr add ${ADDRESS}/24 dev br0`],
    link: "br0",
  },
  { what: "with its address in a guest", lines: [`addr del ${ADDRESS}/24 dev eth0`], link: undefined },
];

const rows = CASES.flatMap((each) =>
  (["containers", "numbers"] as const).flatMap((paths) =>
    (["", "a machine", "no cookie", "another cookie"] as const).map((row) => ({ ...each, paths, row })),
  ),
)
  // All links of a machine's pod go down: the bridge is one more, which the model has only as the name of a link.
  .filter(({ link, row }) => !(link === "br0" && row === "a machine"));

const QUESTIONS = {
  "": {},
  "a machine": { hasMachine: true },
  "no cookie": { hasCookie: false },
  "another cookie": { isOther: true },
};

it.for(rows)("a NIC $what, paths of $paths, row with $row", async ({ lines, link, paths, row }) => {
  const pod = lab.addPod({ addresses: [`${ADDRESS}/24`] });
  for (const line of lines) pod.ip(line);
  const { namespaces, nic } = simulate(paths);
  nic.link = link;
  using path = paths === "numbers" ? numberOf(pod) : { netns: pod.link.netnsPath, [Symbol.dispose]: () => {} };
  const real = await ask(KERNEL_NICS, path.netns, QUESTIONS[row]);
  lab.ip(pod.netns, `addr flush to ${ADDRESS}`);
  expect(await ask(namespaces.access, namespaces.pathOf("c1"), QUESTIONS[row])).toEqual(real);
});

it.for(["containers", "numbers"] as const)("a path of %s that is gone", async (paths) => {
  const { namespaces } = simulate(paths);
  namespaces.remove("c1");
  const gone = paths === "numbers" ? "/proc/4194303/ns/net" : "/run/netns/bksn-none";
  for (const question of Object.values(QUESTIONS)) {
    const real = await ask(KERNEL_NICS, gone, question);
    expect(await ask(namespaces.access, namespaces.pathOf("c1"), question)).toEqual(real);
  }
});

it("a number that a process of the node has now", async () => {
  const { namespaces } = simulate("numbers");
  namespaces.remove("c1");
  namespaces.takeNumber(new SimulatedTime(1).process("fate").random);
  for (const question of Object.values(QUESTIONS)) {
    const real = await ask(KERNEL_NICS, "/proc/self/ns/net", question);
    expect(await ask(namespaces.access, namespaces.pathOf("c1"), question)).toEqual(real);
  }
});

/** A process in the pod's namespace, until it is disposed of. */
function numberOf(pod: Pod): Disposable & { readonly netns: string } {
  const sleeper = Number(pod.exec("sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!"));
  return { netns: `/proc/${sleeper}/ns/net`, [Symbol.dispose]: () => void process.kill(sleeper) };
}
