/**
 * The built berthctl against the built agent of a host: what it prints, changes and ends with, also on a terminal and
 * in a pipe.
 */
import { spawn } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { type CommandOutcome, formatShell, requireCommand, runCommand } from "../lab/command.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { type NetnsWorld, withWorld } from "../lab/netns/world.ts";
import { eventually } from "../lab/waiting.ts";

const CONFIG = {
  "conf.yaml": CONF,
  "pool.yaml": ipPool("blue", "10.8.0.0/29", {
    default: true,
    gateway: "10.8.0.1",
    selection: "ascending",
    cooldown: "10m",
  }),
  "six.yaml": ipPool("six", "fd08::/64", {}),
};
const PROGRAM = join(root, "dist", "berthctl.mjs");

function berthctl(world: NetnsWorld, ...words: string[]): Promise<CommandOutcome> {
  return runCommand([process.execPath, PROGRAM, ...words], { env: world.agent.env });
}

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
function onTerminal(world: NetnsWorld, line: string, env: Record<string, string> = {}): Promise<CommandOutcome> {
  const argv = [
    "script",
    "--quiet",
    "--return",
    "--command",
    `${formatShell([process.execPath, PROGRAM])} ${line}`,
    "/dev/null",
  ];
  const unset = Object.fromEntries(COLOR_VARIABLES.map((name) => [name, undefined]));
  return runCommand(argv, { env: { ...world.agent.env, ...unset, TERM: "xterm", ...env } });
}

const quote = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(" ");

async function out(world: NetnsWorld, ...words: string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await berthctl(world, ...words);
  expect([exitCode, stderr]).toEqual([0, ""]);
  return stdout;
}

describe("berthctl on a host", () => {
  it("shows pools, allocations, an address and a pod", () =>
    withWorld(CONFIG, async (world) => {
      const [address = ""] = await world.add("c1", { pod: "shop/web-0/u1" });
      const ip = address.split("/")[0] ?? "";
      expect((await out(world, "pools")).split("\n")).toEqual([
        "POOL  SUBNET       TOTAL  USED  FREE  USED%  COOLING  QUARANTINED  NOTES",
        "blue  10.8.0.0/29      5     1     4    20%        0            0  default",
        "six   fd08::/64     2^64     0  2^64     0%        0            0  -",
        "",
      ]);
      expect(await out(world, "allocations", "--no-headers")).toMatch(
        new RegExp(`^${ip}  blue  Bound  shop/web-0  eth0  c1\n$`),
      );
      expect(await out(world, "export", "--no-headers", "--origin", "pods.example")).toBe(
        `${ip},29,10.8.0.0/29,,blue,Bound,shop,web-0,eth0,,,web-0.shop.pods.example,,,\r\n`,
      );
      expect(await out(world, "ip", ip)).toContain("  pod         shop/web-0\n");
      expect(JSON.parse(await out(world, "pod", "shop/web-0", "-o", "json"))).toMatchObject({
        allocations: [{ address: ip, containerId: "c1" }],
      });
      expect(await out(world, "version", "-o", "name")).toMatch(/^berthctl\/\S+\nagent\/\S+\n$/);
      expect((await berthctl(world, "ip", "192.0.2.1")).exitCode).toBe(1);
    }));

  it("releases what has no NIC any more, and not what may have one; quarantines, and ends that", () =>
    withWorld(CONFIG, async (world) => {
      const [address = ""] = await world.add("c1", { pod: "shop/web-0/u1" });
      const ip = address.split("/")[0] ?? "";
      const state = async () =>
        JSON.parse(await out(world, "allocations", "-o", "json"))[0]?.state as string | undefined;
      await world.sandbox.ip("link add eth0 type veth peer name peer0");
      await world.sandbox.ip(`addr add ${ip}/29 dev eth0`);
      const refused = await berthctl(world, "release", ip, "--yes");
      expect(refused).toMatchObject({
        exitCode: 1,
        stdout: expect.stringMatching(/refused: the NIC eth0 of its pod still has it; --force/),
      });
      expect(await state()).toBe("Bound");
      expect(await berthctl(world, "release", "shop/web-0")).toMatchObject({ exitCode: 2 });
      expect(await out(world, "release", "shop/web-0", "--force", "--dry-run")).toContain("→ Cooling");
      expect(await state()).toBe("Bound");
      expect(await out(world, "release", "shop/web-0", "--force", "--yes")).toMatch(/Done\n$/);
      expect(await state()).toBe("Cooling");
      expect(await out(world, "quarantine", ip, "--yes")).toMatch(/Cooling → Quarantined, .*\nDone\n$/);
      expect(await state()).toBe("Quarantined");
      const [other = ""] = await world.add("c2", { pod: "shop/web-1/u2" });
      expect(other.split("/")[0]).not.toBe(ip);
      expect(await out(world, "quarantine", ip, "--remove", "--yes")).toContain("Quarantined → free");
      expect(JSON.parse(await out(world, "allocations", "--state", "quarantined", "-o", "json"))).toEqual([]);
      const { stdout } = await berthctl(world, "history", ip, "--output", "json");
      expect(stdout).toContain("berthctl --force");
    }));

  it("asks on a terminal before it releases", () =>
    withWorld(CONFIG, async (world) => {
      const [address = ""] = await world.add("c1", { pod: "shop/web-0/u1" });
      const argv = [
        "script",
        "--quiet",
        "--return",
        "--command",
        formatShell([process.execPath, PROGRAM, "release", address.split("/")[0] ?? "", "--force"]),
        "/dev/null",
      ];
      const answer = async (stdin: string) => runCommand(argv, { env: world.agent.env, stdin });
      expect(await answer("n\n")).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("Continue? [y/N]") });
      expect(await answer("y\n")).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("Done") });
    }));

  it.each<[shell: string, type: (words: readonly string[]) => string[]]>([
    [
      "bash",
      (words) => [
        "bash",
        "-c",
        `source <(berthctl completion bash); COMP_WORDS=(berthctl ${quote(words)}); COMP_CWORD=${words.length}; _berthctl; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ],
    ],
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
  ])("completes in a real %s", (_, type) =>
    withWorld(CONFIG, async (world) => {
      await world.add("c1", { pod: "shop/web-0/u1" });
      const bin = join(world.agent.directory, "bin");
      mkdirSync(bin);
      symlinkSync(PROGRAM, join(bin, "berthctl"));
      const PATH = `${bin}:${join(root, "node_modules", ".bin")}:${process.env.PATH}`;
      const offered = async (...words: string[]) => {
        const text = await requireCommand(type(words), { env: { ...world.agent.env, PATH, HOME: bin } });
        return text
          .trim()
          .split("\n")
          .map((line) => line.split("\t")[0]);
      };
      expect(await offered("pools", "")).toEqual(["blue", "six"]);
      expect((await offered("po")).toSorted()).toEqual(["pod", "pools"]);
      expect(await offered("pod", "shop/")).toEqual(["shop/web-0"]);
      expect(await offered("allocations", "--pool", "b")).toEqual(["blue"]);
    }),
  );

  it("colours what needs attention on a terminal, unless NO_COLOR is set", () =>
    withWorld({ ...CONFIG, "pool.yaml": ipPool("blue", "10.8.0.2/31", { default: true }) }, async (world) => {
      for (const name of ["c1", "c2"]) await world.add(name);
      expect((await onTerminal(world, "pools")).stdout).toContain("\u001b[31m100%\u001b[0m");
      expect((await onTerminal(world, "pools", { NO_COLOR: "1" })).stdout).not.toContain("\u001b[31m");
      expect((await berthctl(world, "pools")).stdout).not.toContain("\u001b");
    }));

  it("--watch prints what changes, until it is interrupted", () =>
    withWorld(CONFIG, async (world) => {
      await world.add("c1", { pod: "shop/web-0/u1" });
      const child = spawn(process.execPath, [PROGRAM, "allocations", "--watch", "--no-headers"], {
        env: { ...process.env, ...world.agent.env },
      });
      let text = "";
      child.stdout.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      try {
        await eventually(
          async () => text,
          (seen) => seen.includes("web-0"),
        );
        await world.add("c2", { pod: "shop/web-1/u2" });
        expect(
          await eventually(
            async () => text,
            (seen) => seen.includes("web-1"),
          ),
        ).toMatch(/web-0(?:.|\n)*web-1/);
        child.kill("SIGINT");
        expect(
          await eventually(
            async () => child.exitCode,
            (code) => code !== null,
          ),
        ).toBe(0);
      } finally {
        child.kill("SIGKILL");
      }
    }));

  it("a reader that has enough is no failure", () =>
    withWorld(CONFIG, async (world) => {
      const line = `${formatShell([process.execPath, PROGRAM])} --help | head -n 1; echo "\${PIPESTATUS[0]}"`;
      const { stdout, stderr } = await runCommand(["bash", "-c", line], { env: world.agent.env });
      expect([stdout, stderr]).toEqual([expect.stringMatching(/^Usage: berthctl .*\n0\n$/), ""]);
    }));

  it("without an agent: 3", async () => {
    const { exitCode, stderr } = await runCommand([process.execPath, PROGRAM, "pools", "--socket", "/nowhere/s"]);
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining("No agent answers on /nowhere/s")]);
  });
});
