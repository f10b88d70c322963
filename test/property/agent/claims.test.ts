import fc from "fast-check";
import { expect, it } from "vitest";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import type { ReservedIp } from "../../../host/resources/reserved-ip.ts";
import { ip, pool, range } from "../../unit/ipam/subjects.ts";
import { mac } from "../../unit/registry/registry-quarantine-suite.ts";
import { type AddOptions, IpamWorld, SANDBOXES } from "./ipam-world.ts";

const TIME_MS = 10_000;
const SEED = Number(process.env.BERTH_SEED ?? Date.now() % 2 ** 31);

/** Each pool in the shapes between which a person may edit it; undefined: removed. */
const SHAPES: Record<string, readonly (IpPool | undefined)[]> = {
  a: [
    pool("a", "10.0.0.0/29", { cooldownMs: 5_000 }),
    pool("a", "10.0.0.0/29", { ips: ["10.0.0.1-10.0.0.3"], selection: "ascending" }),
    pool("a", "10.0.0.0/29", { excludeIPs: ["10.0.0.2-10.0.0.4"] }),
    undefined,
  ],
  /** Shares its addresses with `a`. */
  b: [pool("b", "10.0.0.0/29", { ips: ["10.0.0.3-10.0.0.6"], cooldownMs: 0 }), pool("b", "10.0.0.0/29"), undefined],
  /** The same addresses in another space. */
  lab: [pool("lab", "10.0.0.0/29", { addressSpace: "lab", cooldownMs: 5_000 }), undefined],
  /** Moves: between spaces, subnets and families. */
  m: [
    pool("m", "10.1.0.0/30", { cooldownMs: 5_000 }),
    pool("m", "10.1.0.0/30", { addressSpace: "lab" }),
    pool("m", "10.2.0.0/30"),
    pool("m", "fd00:2::/126"),
  ],
  six: [pool("six", "fd00::/125", { cooldownMs: 5_000 }), pool("six", "fd00::/125", { ips: ["fd00::1-fd00::3"] })],
};

const reservedTwo: ReservedIp = {
  kind: "ReservedIP",
  name: "two",
  spec: { family: 4, ranges: [range("10.0.0.2")], addressSpace: "" },
};

function describeResource(resource: IpPool | ReservedIp): string {
  if (resource.kind === "ReservedIP") return `reserved ${resource.name}`;
  return `${resource.name}[${SHAPES[resource.name]?.indexOf(resource)}]`;
}

const configuration = fc
  .record({
    pools: fc.record(
      Object.fromEntries(Object.entries(SHAPES).map(([name, shapes]) => [name, fc.constantFrom(...shapes)])),
    ),
    reserved: fc.boolean(),
  })
  .map(({ pools, reserved }) => [
    ...Object.values(pools).filter((each) => each !== undefined),
    ...(reserved ? [reservedTwo] : []),
  ]);

const NICS: readonly AddOptions["nics"][] = [
  [{ ifName: "eth0", pools: [["a"]] }],
  [{ ifName: "eth0", pools: [["a", "b"], ["six"]] }],
  [{ ifName: "eth0", pools: [["b", "m"]] }],
  [
    { ifName: "eth0", pools: [["a"], ["six"]] },
    { ifName: "net1", pools: [["lab"]] },
  ],
  [
    { ifName: "eth0", pools: [["m"]] },
    { ifName: "net1", pools: [["a", "b"]] },
  ],
  [
    { ifName: "eth0", pools: [["b"], ["six"]] },
    { ifName: "net1", pools: [["b"], ["six"]] },
  ],
];

const owner = fc.nat({ max: 5 });
const sandbox = fc.constantFrom(...SANDBOXES);
const nic = fc.constantFrom("eth0", "net1");

type Act = (world: IpamWorld) => Promise<void> | void;

function named(text: string, act: Act): Act & { toString(): string } {
  return Object.assign(act, { toString: () => text });
}

const add = fc
  .record({
    ...{ owner, sandbox, nic },
    requested: fc.option(fc.constantFrom("10.0.0.1", "10.0.0.3", "10.1.0.1", "fd00::2"), { freq: 4, nil: undefined }),
    hangUp: fc.option(fc.constantFrom("early" as const, "late" as const), { freq: 4, nil: undefined }),
    detection: fc.constantFrom("off" as const, "fail" as const, "next" as const),
  })
  .map((drawn) => {
    const nics = NICS[drawn.owner % NICS.length] ?? [];
    const ifName = nics.length > 1 ? drawn.nic : "eth0";
    const text = `add pod-${drawn.owner} c${drawn.owner}-${drawn.sandbox}/${ifName} asked ${drawn.requested} hang-up ${drawn.hangUp} detection ${drawn.detection}`;
    return named(text, (world) =>
      world.add({
        ...{ owner: `pod-${drawn.owner}`, containerId: `c${drawn.owner}-${drawn.sandbox}`, ifName, nics },
        requested: drawn.requested === undefined ? undefined : ip(drawn.requested),
        ...{ hangUp: drawn.hangUp, detection: drawn.detection },
      }),
    );
  });

const del = fc
  .record({ owner, sandbox, nic })
  .map((drawn) => ({ containerId: `c${drawn.owner}-${drawn.sandbox}`, ifName: drawn.nic }))
  .map((attachment) => named(`del ${attachment.containerId}/${attachment.ifName}`, (world) => world.del(attachment)));

const collect = fc
  .nat({ max: 4 })
  .map((kept) => named(`gc all but ${kept}`, (world) => world.collect(world.attachments.slice(0, kept))));

const PLACES = [
  "10.0.0.1",
  "10.0.0.2",
  "10.0.0.3",
  "10.0.0.4",
  "10.0.0.5",
  "10.1.0.1",
  "10.1.0.2",
  "fd00::1",
  "fd00::2",
];
const RIVALS = [1, 2, 3, 4, 5, 6].map((last) => mac(`02:00:00:00:00:0${last}`));

const rival = fc
  .record({ place: fc.constantFrom(...PLACES), holder: fc.constantFrom(undefined, ...RIVALS) })
  .map(({ place, holder }) =>
    named(`${place} is ${holder ?? "nobody"}'s`, (world) => world.segment.rival(place, holder)),
  );

const probe = fc.constant(named("ask for what is in quarantine", (world) => world.probe()));

const later = fc
  .constantFrom(1, 500, 2_000, 5_000, 121_000, 3_600_000)
  .map((milliseconds) => named(`${milliseconds} ms later`, (world) => world.advance(milliseconds)));

const expire = fc.constant(named("expire", (world) => world.expire()));

const edit = configuration.map((resources) =>
  named(`edit to ${resources.map(describeResource).join(", ")}`, (world) => world.edit(resources)),
);

const act = fc.oneof(
  { arbitrary: add, weight: 8 },
  { arbitrary: del, weight: 4 },
  { arbitrary: expire, weight: 3 },
  { arbitrary: later, weight: 2 },
  { arbitrary: edit, weight: 2 },
  { arbitrary: collect, weight: 1 },
  { arbitrary: rival, weight: 3 },
  { arbitrary: probe, weight: 2 },
);

/** Acts at once, each begun some turns of the event loop after the start. */
const burst = fc.array(fc.tuple(fc.nat({ max: 3 }), act), { minLength: 1, maxLength: 8 }).map((acts) =>
  named(acts.map(([turns, each]) => `  after ${turns}: ${each}`).join("\n"), async (world) => {
    await Promise.all(
      acts.map(async ([turns, each]) => {
        for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
        await each(world);
      }),
    );
  }),
);

const restart = fc.boolean().map((reboots) => named(reboots ? "reboot" : "restart", (world) => world.restart(reboots)));

const step = fc.oneof({ arbitrary: burst, weight: 40 }, { arbitrary: restart, weight: 1 });

it("I1 and I2 hold after any mixture of claims, releases, conflicts, hang-ups, edits and restarts", {
  timeout: 120_000,
}, async () => {
  let walks = 0;
  let steps = 0;
  const walk = fc.array(step, { minLength: 10, maxLength: 60, size: "max" });
  const property = fc.asyncProperty(edit, walk, async (first, others) => {
    walks++;
    const world = await IpamWorld.open();
    try {
      for (const each of [first, ...others]) {
        steps++;
        await each(world);
        expect(await world.findFaults()).toEqual([]);
      }
    } finally {
      await world.close();
    }
  });
  console.log(`claims: BERTH_SEED=${SEED}`);
  await fc.assert(property, {
    seed: SEED,
    numRuns: 100_000,
    interruptAfterTimeLimit: TIME_MS,
    markInterruptAsFailure: false,
  });
  console.log(`claims: ${walks} walks, ${steps} steps`);
  expect(steps).toBeGreaterThan(100);
});
