/**
 * berthctl against the built agent of a host: its output, changes and exit codes; the built one on a terminal, in a
 * pipe and in shells.
 */
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { type CommandLineEnding, runBerthctl } from "../lab/berthctl.ts";
import { type CommandOutcome, formatShell, requireCommand, runCommand } from "../lab/command.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { type NetnsWorld, openAlone } from "../lab/netns/world.ts";
import { PATIENCE } from "../lab/waiting.ts";

const CONFIG = {
  "conf.yaml": CONF,
  "pool.yaml": ipPool("blue", "10.8.0.0/28", {
    default: true,
    gateway: "10.8.0.1",
    selection: "ascending",
    cooldown: "10m",
  }),
  "six.yaml": ipPool("six", "fd08::/64", {}),
};
const PROGRAM = join(root, "dist", "berthctl.mjs");

let world: NetnsWorld;
let bin: string;

beforeAll(async () => {
  world = await openAlone(CONFIG);
  bin = join(world.agent.directory, "bin");
  mkdirSync(bin);
  symlinkSync(PROGRAM, join(bin, "berthctl"));
});
afterAll(() => world?.delete());

const berthctl = (...words: string[]): Promise<CommandLineEnding> =>
  runBerthctl(...words, "--socket", world.agent.socket);

/**
 * The variables by which Node.js decides whether a terminal has colours, besides TERM: a CI server sets some of them.
 */
const COLOR_VARIABLES = [
  "NO_COLOR",
  "NODE_DISABLE_COLORS",
  "FORCE_COLOR",
  "COLORTERM",
  "CI",
  "TF_BUILD",
  "TEAMCITY_VERSION",
];

/** The same on a terminal, which util-linux's script plays. */
function onTerminal(
  line: string,
  env: Record<string, string | undefined> = {},
  stdin?: string,
): Promise<CommandOutcome> {
  const argv = [
    "script",
    "--quiet",
    "--return",
    "--command",
    `${formatShell([process.execPath, PROGRAM])} ${line}`,
    "/dev/null",
  ];
  const unset = Object.fromEntries(COLOR_VARIABLES.map((name) => [name, undefined]));
  const more = stdin === undefined ? {} : { stdin };
  return runCommand(argv, { env: { ...world.agent.env, ...unset, TERM: "xterm", ...env }, ...more });
}

const quote = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(" ");

async function out(...words: string[]): Promise<string> {
  const { out, error, code } = await berthctl(...words);
  expect([code, error]).toEqual([0, ""]);
  return out;
}

/** Returns the pod's address. */
async function attach(name: string): Promise<string> {
  const [address = ""] = await world.add(`c-${name}`, { pod: `shop/${name}/u-${name}` });
  return address.split("/")[0] ?? "";
}

it("shows pools, allocations, an address and a pod", async () => {
  const ip = await attach("web-0");
  expect((await out("pools")).split("\n")).toEqual([
    "POOL  SUBNET       TOTAL  USED  FREE  USED%  COOLING  QUARANTINED  NOTES",
    "blue  10.8.0.0/28     13     1    12     7%        0            0  default",
    "six   fd08::/64     2^64     0  2^64     0%        0            0  -",
    "",
  ]);
  expect(await out("allocations", "--no-headers")).toBe(`${ip}  blue  Bound  shop/web-0  eth0  c-web-0\n`);
  expect(await out("export", "--no-headers", "--origin", "pods.example")).toBe(
    `${ip},28,10.8.0.0/28,,blue,Bound,shop,web-0,eth0,,,web-0.shop.pods.example,,,\r\n`,
  );
  expect(await out("ip", ip)).toContain("  pod         shop/web-0\n");
  expect(JSON.parse(await out("pod", "shop/web-0", "-o", "json"))).toMatchObject({
    allocations: [{ address: ip, containerId: "c-web-0" }],
  });
  expect(await out("version", "-o", "name")).toMatch(/^berthctl\/\S+\nagent\/\S+\n$/);
  expect((await berthctl("ip", "192.0.2.1")).code).toBe(1);
});

it.each<[shell: string, type: (words: readonly string[]) => string[]]>([
  [
    "zsh",
    (words) => [
      "zsh",
      "-f",
      "-c",
      `autoload -Uz compinit; compinit -D; source <(berthctl completion zsh); _describe() { print -rl -- "\${(@P)2%%:*}" }
       words=(berthctl ${quote(words)}); CURRENT=${words.length + 1}; _berthctl`,
    ],
  ],
  [
    "fish",
    (words) => ["fish", "-N", "-c", `berthctl completion fish | source; complete -C 'berthctl ${words.join(" ")}'`],
  ],
])("completes in a real %s", async (_, type) => {
  await attach("web-0");
  const PATH = `${bin}:${join(root, "node_modules", ".bin")}:${process.env.PATH}`;
  const offered = async (...words: string[]) => {
    return (await requireCommand(type(words), { env: { ...world.agent.env, PATH, HOME: bin } }))
      .trim()
      .split("\n")
      .map((line) => line.split("\t")[0]);
  };
  expect(await offered("pools", "")).toEqual(["blue", "six"]);
  expect((await offered("po")).toSorted()).toEqual(["pod", "pools"]);
  expect(await offered("pod", "shop/")).toEqual(["shop/web-0"]);
  expect(await offered("allocations", "--pool", "b")).toEqual(["blue"]);
});

it("releases an address without a NIC, and not one that may have a NIC; quarantines, and ends that", async () => {
  const ip = await attach("web-1");
  const state = async (): Promise<string | undefined> =>
    JSON.parse(await out("allocations", "-o", "json")).find(({ address }: { address: string }) => address === ip)
      ?.state;
  await world.sandbox.ip("link add eth0 type veth peer name peer0");
  await world.sandbox.ip(`addr add ${ip}/28 dev eth0`);
  const refused = await berthctl("release", ip, "--yes");
  expect(refused).toMatchObject({
    code: 1,
    out: expect.stringMatching(/refused: the NIC eth0 of its pod still has it; --force/),
  });
  expect(await state()).toBe("Bound");
  expect(await berthctl("release", "shop/web-1")).toMatchObject({ code: 2 });
  expect(await out("release", "shop/web-1", "--force", "--dry-run")).toContain("→ Cooling");
  expect(await state()).toBe("Bound");
  expect(await out("release", "shop/web-1", "--force", "--yes")).toMatch(/Done\n$/);
  expect(await state()).toBe("Cooling");
  expect(await out("quarantine", ip, "--yes")).toMatch(/Cooling → Quarantined, .*\nDone\n$/);
  expect(await state()).toBe("Quarantined");
  expect(await attach("web-2")).not.toBe(ip);
  expect(await out("quarantine", ip, "--remove", "--yes")).toContain("Quarantined → free");
  expect(JSON.parse(await out("allocations", "--state", "quarantined", "-o", "json"))).toEqual([]);
  await expect.poll(() => out("history", ip, "--output", "json"), PATIENCE).toContain("ordered with berthctl --force");
});

it("asks on a terminal before it releases", async () => {
  const line = `release ${await attach("web-3")} --force`;
  expect(await onTerminal(line, {}, "n\n")).toMatchObject({
    exitCode: 1,
    stdout: expect.stringContaining("Continue? [y/N]"),
  });
  expect(await onTerminal(line, {}, "y\n")).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("Done") });
});

it("colours the rows that need attention on a terminal, unless NO_COLOR is set", async () => {
  await world.agent.write("full.yaml", ipPool("full", "10.9.0.2/31", {}));
  for (const name of ["f1", "f2"]) await world.add(name, { ipam: { default_ipv4_ippool: ["full"] } });
  expect((await onTerminal("pools")).stdout).toContain("\u001b[31m100%\u001b[0m");
  expect((await onTerminal("pools", { NO_COLOR: "1" })).stdout).not.toContain("\u001b[31m");
  expect(await out("pools")).not.toContain("\u001b");
});

it("a reader that has enough is no failure", async () => {
  const line = `${formatShell([process.execPath, PROGRAM])} --help | head -n 1; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await runCommand(["bash", "-c", line]);
  expect([stdout, stderr]).toEqual([expect.stringMatching(/^Usage: berthctl .*\n0\n$/), ""]);
  // The exit code is the command's, not that of an error that cannot be written.
  const silent = `${formatShell([process.execPath, PROGRAM])} nothing 2>/dev/full`;
  expect(await runCommand(["sh", "-c", silent])).toMatchObject({ exitCode: 2 });
});
