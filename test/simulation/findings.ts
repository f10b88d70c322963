/** Runs of the simulation that once violated an invariant. They stay: the tests repeat them in parts. */
import { afterAll, it } from "vitest";
import { checkRun, describeSteps } from "./check-run.ts";
import { DEFAULTS, type RunOptions } from "./run.ts";

type Finding = Pick<RunOptions, "seed" | "profile" | "steps" | "without"> &
  Partial<Pick<RunOptions, "faults" | "nodes" | "pods">>;

/** Returns the actions of a shrunk run that do not happen, up to the one with number `last`. */
const allBut = (kept: readonly number[], last: number): ReadonlySet<number> =>
  new Set(Array.from({ length: last + 1 }, (_, index) => index).filter((index) => !kept.includes(index)));

const FINDINGS: readonly (readonly [what: string, options: Finding])[] = [
  [
    "the kind of allocations is deleted and created again under running pods",
    { seed: 6, profile: "registry", steps: 8_000 },
  ],
  ["the API server goes back in time", { seed: 16, profile: "registry", steps: 8_000 }],
  [
    "the API server goes back while nodes wait for each other, and nothing of the past is retained",
    { seed: 41, profile: "registry", steps: 20_000 },
  ],
  ["an undone claim leaves what was retained before it", { seed: 1, profile: "statefulsets", steps: 10_000 }],
  ["what an undone claim has left is not the member's", { seed: 4, profile: "statefulsets", steps: 5_000 }],
  ["what a killed agent has not answered is not retained", { seed: 1, profile: "partition", steps: 5_000 }],
  ["two claims of a node meet at a retained address", { seed: 1, profile: "partition", steps: 10_000 }],
  ["an earlier pod's address is looked up again", { seed: 102, profile: "statefulsets", steps: 5_000 }],
  ["an address that was never attached delays no pod", { seed: 104, profile: "statefulsets", steps: 5_000 }],
  ["what a lost journal takes in may be unanswered", { seed: 3013, profile: "faults", steps: 5_000 }],
  ["an ADD is answered while its pod is collected", { seed: 17, profile: "conflicts", steps: 5_000 }],
  [
    "of its cooling addresses a pod had one that was never answered",
    { seed: 7009, profile: "partition", steps: 5_000 },
  ],
  ["what is adopted for another NIC is not the member's", { seed: 8018, profile: "faults", steps: 5_000 }],
  ["an adopted address is in doubt until an answer", { seed: 7004, profile: "statefulsets", steps: 5_000 }],
  ["a lost journal's claim is carried out late", { seed: 7013, profile: "faults", steps: 5_000 }],
  ["a NIC has an address that a lost journal took in", { seed: 1, profile: "faults", steps: 18_000 }],
  ["an undone claim of an adopted address leaves it the member's", { seed: 20_011, profile: "faults", steps: 5_000 }],
  ["the same with a pool that has none to spare", { seed: 20_026, profile: "statefulsets", steps: 5_000 }],
  ["a pod's cooling addresses are its own after an undone claim", { seed: 20_025, profile: "runtimes", steps: 5_000 }],
  [
    "addresses that a machine answers for at once are quarantined one after another",
    { seed: 30_000, profile: "conflicts", steps: 5_000 },
  ],
  ["a late write of an earlier pod is not the member's", { seed: 50_013, profile: "statefulsets", steps: 5_000 }],
  ["a pod that cannot be read in time is no bug", { seed: 50_056, profile: "statefulsets", steps: 5_000 }],
  ["what the journal took in of the other family stays", { seed: 50_080, profile: "faults", steps: 5_000 }],
  ["a surplus address that cools is free in the end", { seed: 201, profile: "pools", steps: 8_000 }],
  ["what a claim ahead of the ADD left undecided is retained", { seed: 324, profile: "pools", steps: 5_000 }],
  ["what an undone claim is not superseded in stays the member's", { seed: 60_046, profile: "faults", steps: 5_000 }],
  [
    "what another pod tries to claim may be what a lost journal had for this one",
    { seed: 311, profile: "restores", steps: 5_000 },
  ],
  ["a Subnet's address was claimed while it changed its pool", { seed: 24, profile: "subnets", steps: 12_000 }],
  ["what an undone claim gives back to its member is waited for", { seed: 74_014, profile: "faults", steps: 5_000 }],
  ["of its cooling addresses a pod has the one that its member had", { seed: 76_054, profile: "scaled", steps: 4_000 }],
  ["claims ahead for the NICs of one pod exceed its limit", { seed: 1, profile: "tenants", steps: 5_000 }],
  [
    "what a migration's target was never answered is not its claim's",
    { seed: 81_002, profile: "machines", steps: 10_000 },
  ],
  [
    "an ended pod that a lost journal had beside another one leaves the record",
    { seed: 91_001, profile: "machines", steps: 6_000 },
  ],
  [
    "what cools here as a pod's own is another's since its record was lost",
    { seed: 810_000_015, profile: "registry", steps: 20_000 },
  ],
  [
    "a late watch of pods makes a member's last pod an unseen one",
    { seed: 820_000_054, profile: "statefulsets", steps: 20_000 },
  ],
  [
    "the machine in a lost one's place is not told what nobody retains any more",
    { seed: 820_000_045, profile: "replacements", steps: 20_000 },
  ],
  [
    "a claim at a lost node's address is undone after the node has looked at it",
    { seed: 820_000_196, profile: "machines", steps: 20_000 },
  ],
  ["a later target on a node leaves the source in the record", { seed: 91_012, profile: "machines", steps: 6_000 }],
  ["an address that a claim has lost is not in its status", { seed: 91_018, profile: "machines", steps: 6_000 }],
  ["an address claimed ahead for a launcher that is gone stays", { seed: 91_024, profile: "machines", steps: 6_000 }],
  ["a restarted runtime attaches another sandbox", { seed: 4010, profile: "partition", steps: 5_000 }],
  [
    "ADDs that wait for generated pools wake one another with an address that another node has",
    { seed: 5, profile: "subnets", steps: 8_000, without: allBut([4, 11], 59) },
  ],
  ["an agent does not know of a record that a backup has brought back", { seed: 32, profile: "hands", steps: 5_000 }],
  ["addresses are claimed for a forged mirror of another node's pod", { seed: 25, profile: "tenants", steps: 5_000 }],
  ["an agent does not know yet what its member's generated pool has", { seed: 108, profile: "subnets", steps: 8_000 }],
  [
    "another pod tries to claim what a member's pod has had until just now",
    { seed: 74_931_395, profile: "statefulsets", steps: 40_000, faults: 3 },
  ],
  ["an agent hears late that a pool has lost an address", { seed: 230, profile: "subnets", steps: 4_000 }],
  ["a kubelet hangs while the runtime removes a NIC", { seed: 15, profile: "hands", steps: 9_500 }],
  [
    "a list of a pool's addresses lacks those that are recorded for a pool that is gone",
    { seed: 74_931_386, profile: "pools", steps: 13_500, faults: 3 },
  ],
  [
    "a pool that is edited during an ADD is listed once more",
    { seed: 3_300_001, profile: "pools", steps: 6_500, faults: 2 },
  ],
  ["a pool loses what a member's ADD waits for", { seed: 3_300_004, profile: "pools", steps: 17_000, faults: 2 }],
  [
    "the second NIC's claim requests addresses, and one of them is on a lost node",
    { seed: 3_300_006, profile: "machines", steps: 20_000 },
  ],
  [
    "a creation without an answer is carried out after the next claim was undone",
    { seed: 1, profile: "faults", steps: 8_000 },
  ],
  [
    "an address that was retained on this node was freed without its knowledge",
    { seed: 650_000_013, profile: "calm", steps: 24_000, nodes: 8, pods: 40 },
  ],
  [
    "a member's pod of a full namespace has nothing retained",
    { seed: 680_000_000, profile: "tenants", steps: 7_000, faults: 3 },
  ],
  [
    "an agent's list of pools has no answer for long",
    { seed: 660_000_008, profile: "subnets", steps: 7_000, faults: 3 },
  ],
  [
    "a question about one deleted pool has no answer for long",
    { seed: 74_931_392, profile: "subnets", steps: 33_000, faults: 3 },
  ],
  [
    "a release is carried out after the journal was lost, and the pod's next ADD answered",
    { seed: 680_000_014, profile: "machines", steps: 3_500, faults: 2 },
  ],
  [
    "of several recorded addresses a set's member gets the one that it had",
    { seed: 690_000_002, profile: "statefulsets", steps: 10_500, faults: 3 },
  ],
  ["the same while pools are renamed and shrunk", { seed: 690_000_007, profile: "pools", steps: 15_000, faults: 2 }],
  ["the same while machines are cut off", { seed: 690_000_004, profile: "partition", steps: 12_500, faults: 2 }],
  [
    "an attempt to create a record is carried out after a later one was undone",
    { seed: 690_000_000, profile: "restores", steps: 36_000, nodes: 8, pods: 40 },
  ],
  [
    "a pod that was deleted by force runs on while its member gets what a lost node had",
    { seed: 700_000_009, profile: "silence", steps: 39_100 },
  ],
  [
    "a machine's target finds what a lost node has retained where its search starts",
    { seed: 690_000_009, profile: "machines", steps: 20_000, nodes: 8, pods: 40 },
  ],
  [
    "a claim that is released before it takes an address over takes nothing",
    { seed: 700_000_001, profile: "machines", steps: 15_500, faults: 3 },
  ],
  [
    "a pod gets its own address again that it gave up for one that cannot be probed",
    { seed: 700_000_015, profile: "machines", steps: 19_500, faults: 2 },
  ],
  [
    "the pod from which a machine migrates keeps its address, whatever the other one has",
    { seed: 700_000_020, profile: "machines", steps: 38_500, nodes: 8, pods: 40 },
  ],
  [
    "of two fresh addresses a member keeps the one whose record was created first",
    { seed: 700_000_109, profile: "statefulsets", steps: 31_500, faults: 3 },
  ],
  [
    "a node that was lost records a quarantine again that another one has ended",
    { seed: 710_000_012, profile: "conflicts", steps: 19_000, faults: 3 },
  ],
  [
    "an undone claim of what a lost journal took in leaves it the member's, after a reboot, too",
    { seed: 710_000_014, profile: "restores", steps: 22_500, faults: 2 },
  ],
  [
    "an attempt to create a record is carried out once the pod that had the address is gone",
    { seed: 710_000_024, profile: "partition", steps: 40_000, faults: 3 },
  ],
  [
    "the node that is to probe for a lost one has no pod of the pool any more, and the lost one is back",
    { seed: 710_000_006, profile: "conflicts", steps: 38_000, faults: 3 },
  ],
  [
    "a node that was off records late which machine it heard",
    { seed: 721_000_020, profile: "conflicts", steps: 40_000, nodes: 8, pods: 40 },
  ],
  [
    "a machine whose node has lost its journal keeps its address while it is refused what an earlier pod has",
    { seed: 700_000_200, profile: "machines", steps: 36_500, nodes: 8, pods: 40 },
  ],
  [
    "a journal was copied between the row of a claim and the take-over of what the member had",
    { seed: 710_000_000, profile: "restores", steps: 31_500, faults: 3 },
  ],
  [
    "what a lost journal took in of an earlier pod is its member's, once the next pod has taken it over",
    { seed: 722_000_000, profile: "restores", steps: 33_500, faults: 3 },
  ],
  [
    "the write of what the member had before is carried out late, beside a fresh one that a lost journal took in",
    { seed: 720_000_005, profile: "statefulsets", steps: 40_000, faults: 3 },
  ],
  [
    "what a lost journal took in as new to the member is no reason to release what the member had, before its ADD ends",
    { seed: 722_000_002, profile: "runtimes", steps: 31_000, faults: 2 },
  ],
  [
    "the same while another NIC's addresses are claimed ahead",
    { seed: 723_000_002, profile: "statefulsets", steps: 16_000, faults: 3 },
  ],
  [
    "an ADD is answered with what a list said before the address was retained",
    { seed: 730_000_006, profile: "restores", steps: 8_800, faults: 2 },
  ],
  [
    "a fresh address that was taken over without a lookup stays beside a younger one that a lost journal had retained",
    { seed: 730_000_024, profile: "restores", steps: 8_900, faults: 2 },
  ],
  [
    "a record that was deleted by hand and restored by hand needs no write of the product",
    { seed: 726_000_003, profile: "hands", steps: 40_000, nodes: 8, pods: 40 },
  ],
  [
    "what this node's journal has as answered is not fresh, though its object still says so, and was created late",
    { seed: 727_000_003, profile: "faults", steps: 40_000, faults: 2 },
  ],
  [
    "an older journal retains what the controller has released since",
    { seed: 727_000_003, profile: "restores", steps: 19_000, faults: 2 },
  ],
  [
    "a record of a pod that is there is restored by hand; its agent, whose disk fails, hears of it only in the end",
    { seed: 727_000_010, profile: "hands", steps: 40_000, faults: 3 },
  ],
  [
    "an older journal does not know what its node has taken over from another one",
    { seed: 728_000_009, profile: "restores", steps: 17_200, faults: 3 },
  ],
  [
    "a deleted pool stays for an address that it lost while a member had it",
    { seed: 729_000_001, profile: "subnets", steps: 34_000, faults: 2 },
  ],
  [
    "somebody restores the record of a pod that is gone, again and again",
    { seed: 731_000_011, profile: "hands", steps: 30_000, faults: 2 },
  ],
  [
    "a controller that stands still most of the time takes an address out of its pool of which it has not heard",
    { seed: 731_000_006, profile: "subnets", steps: 10_000, faults: 3 },
  ],
  [
    "one lost answer about a pod that is gone does not hold up the release of others",
    { seed: 732_000_012, profile: "statefulsets", steps: 40_000, nodes: 8, pods: 40, faults: 1 },
  ],
  [
    "a silent node still has what a member had before its set was scaled",
    { seed: 732_000_007, profile: "silence", steps: 28_600, faults: 2 },
  ],
  [
    "of two addresses of which a lost journal knew which was answered, either may be next, until one is released",
    { seed: 733_000_005, profile: "restores", steps: 34_500, nodes: 8, pods: 40, faults: 1 },
  ],
  [
    "a node that was asked to probe an address has not heard that its member has it again",
    { seed: 735_000_011, profile: "conflicts", steps: 39_600, faults: 3 },
  ],
  [
    "controllers that stand still again and again leave a pool that nothing needs a little longer",
    { seed: 731_000_000, profile: "subnets", steps: 40_000, faults: 3 },
  ],
  [
    "a record that is restored by hand for a pod that is there stays until its agent compares",
    { seed: 732_000_005, profile: "hands", steps: 40_000, faults: 3 },
  ],
  ["another machine under a node's name confirms nothing", { seed: 4, profile: "replacements", steps: 4_000, pods: 6 }],
  [
    "what a replaced machine had is probed, if its member has another address",
    { seed: 71_014, profile: "replacements", steps: 15_000 },
  ],
  ["an old journal hides that other nodes have addresses", { seed: 3, profile: "restores", steps: 5_000 }],
  [
    "a journal that was emptied under its agent is compared",
    { seed: 12, profile: "damage", steps: 4_000, nodes: 2, pods: 10 },
  ],
  ["an ADD joins a replay that does not have its container's DEL", { seed: 3, profile: "containers", steps: 3_000 }],
];

/** Longer runs are too much for the gate. */
const MOST_STEPS = 5_000;
const isLarge = ([, { nodes = 0, steps }]: (typeof FINDINGS)[number]): boolean =>
  nodes > DEFAULTS.nodes || steps > MOST_STEPS;
const small = FINDINGS.filter((finding) => !isLarge(finding));

/** The gate's two halves, which run beside each other; `large`: longer ones, and of more machines. */
const PARTS = {
  even: small.filter((_, index) => index % 2 === 0),
  odd: small.filter((_, index) => index % 2 === 1),
  large: FINDINGS.filter(isLarge),
};

export function repeatFindings(part: keyof typeof PARTS): void {
  const timeout = part === "large" ? 600_000 : 60_000;
  it.for(PARTS[part])("%s", { timeout }, ([, options]) => checkRun({ ...DEFAULTS, ...options }));
  afterAll(() => console.log(describeSteps()));
}
