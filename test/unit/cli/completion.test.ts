/** Completions that shells are offered, and the scripts in a real bash. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { beforeAll, describe, expect, it } from "vitest";
import { readMoreCommands } from "../../../host/bin/extensions.ts";
import { createCommands } from "../../../host/cli/berthctl.ts";
import { complete, completionRows } from "../../../host/cli/completion.ts";
import { SHELL_SCRIPTS } from "../../../host/cli/shell-scripts.ts";
import { temporaryDirectory } from "../../world/temporary-directory.ts";

const terminal = { write: () => {}, writeError: () => {}, isColored: false };
const { root } = await createCommands({
  program: "berthctl",
  version: "1",
  words: [],
  terminal,
  more: await readMoreCommands(),
});
const NAMES = { pool: ["blue", "black", "red"], pod: ["shop/web-0"], node: ["n1"], namespace: ["shop"] };

const offered = async (line: string) => {
  const { candidates, isFile } = await complete(root, line.split(" "), async (kind) => NAMES[kind]);
  return isFile ? "files" : candidates.map(({ value }) => value).join(" ");
};

it.each<[line: string, wanted: string]>([
  ["po", "pools pod"],
  ["version ", ""],
  ["pools ", "blue black red"],
  ["pools b", "blue black"],
  ["pools blue ", "black red"],
  ["pod s", "shop/web-0"],
  ["release ", "shop/web-0"],
  ["allocations --pool r", "red"],
  ["allocations --pool=b", "--pool=blue --pool=black"],
  ["allocations --state ", "bound cooling kept quarantined"],
  ["allocations -n ", "shop"],
  ["allocations -o ", "wide name json yaml"],
  ["allocations --node n", "n1"],
  ["--node n1 allocations --st", "--state"],
  ["--kubeconfig ", "files"],
  ["check --report ", "files"],
  ["check --state-dir=", "files"],
  ["reserve --file ", "files"],
  ["release --from-report ", "files"],
  ["convert calico a.yaml ", "files"],
  ["pools --kubeconfig /x b", "blue black"],
  ["pools --kube", "--kubeconfig"],
  ["completion ", "bash zsh fish"],
  ["nothing ", ""],
])("%j offers %j", async (line, wanted) => expect(await offered(line)).toBe(wanted));

it("every option of a command is offered, and the global ones", async () => {
  const found = (await offered("allocations --")).split(" ");
  expect(found).toEqual(expect.arrayContaining(["--namespace", "--watch", "--socket", "--context", "--help"]));
});

const visible = (command: Command, above = ""): [name: string, command: Command][] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== "help")
    .flatMap((each) => [[`${above}${each.name()}`, each], ...visible(each, `${each.name()} `)]);
const optionsOf = ({ options, commands }: Command): (string | undefined)[] => [
  ...options.flatMap(({ long, short }) => [long, short]),
  ...commands.flatMap(optionsOf),
];

it.each(visible(root))("the help of %s has two examples, with options that it has", (name, command) => {
  let help = "";
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
  const examples = help.split("\nExamples:\n")[1]?.trimEnd().split("\n") ?? [];
  expect(examples.length).toBeGreaterThanOrEqual(2);
  for (const line of examples) {
    expect(`${line} `).toMatch(new RegExp(`^  berthctl ${name} `));
    const given = line.match(/(?<= )--?[a-zA-Z][a-z0-9-]*/g) ?? [];
    expect([...optionsOf(command), ...optionsOf(root)]).toEqual(expect.arrayContaining(given));
  }
});

it("the protocol is that of cobra", () => {
  const candidates = [{ value: "a", description: "first\n thing" }, { value: "b" }];
  expect(completionRows({ candidates, isFile: false })).toEqual([["a", "first thing"], ["b"], [":4"]]);
  expect(completionRows({ candidates: [], isFile: true })).toEqual([[":0"]]);
});

describe("the script in a real bash", () => {
  const directory = temporaryDirectory("berth-completion-");

  /** A berthctl that writes down how it was called, and offers two names. */
  beforeAll(() => {
    const program = `#!/bin/sh\nprintf '[%s]' "$@" >"${directory}/called"\ncase "$*" in *kubeconfig*) echo ":0" ;; *=*) printf -- '--pool=blue\\tx\\n:4\\n' ;; *) printf 'blue\\tthe pool\\nblack\\n:4\\n' ;; esac\n`;
    writeFileSync(join(directory, "berthctl"), program, { mode: 0o755 });
    writeFileSync(join(directory, "script"), SHELL_SCRIPTS.bash);
  });

  /** Returns bash's offers, and the questions to berthctl. */
  function type(...words: string[]): { readonly offered: string; readonly asked: string } {
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const script = `set -eu; source "${directory}/script"; source "${directory}/script"
COMP_WORDS=(berthctl ${quoted}); COMP_CWORD=${words.length}; _berthctl; echo "\${COMPREPLY[*]:-}"; cat "${directory}/called"`;
    const { stdout, stderr, status } = spawnSync("bash", ["--norc", "-c", script], {
      encoding: "utf8",
      env: { PATH: `${directory}:/usr/bin:/bin` },
    });
    expect([status, stderr]).toEqual([0, ""]);
    const [offered = "", asked = ""] = stdout.split("\n");
    return { offered, asked };
  }

  it.each<[words: string[], offered: string, asked: string]>([
    [["pools", ""], "blue black", "[__complete][pools][]"],
    [["--kubeconfig", ""], "", "[__complete][--kubeconfig][]"],
    [["pools", "--pool", "=", "b"], "blue", "[__complete][pools][--pool][=][b]"],
    [["pools", "$(touch /tmp/berth-evaluated)"], "blue black", "[__complete][pools][$(touch /tmp/berth-evaluated)]"],
  ])("%j", (words, offered, asked) => expect(type(...words)).toEqual({ offered, asked }));
});
