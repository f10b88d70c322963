/**
 * Histories as text. A transcript consists of paragraphs: lines of commands, with `; ` between those of one line, a
 * line `----`, and the output of the commands. A line `== title` begins a scenario, for which everything is new; `#`
 * begins a comment. `npm run transcripts` writes the present output of all commands.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";

/** Lines, none of them empty; undefined for none. */
type Shown = readonly string[] | undefined;

export interface Scenario {
  readonly commands: Readonly<Record<string, (line: CommandLine) => Shown | Promise<Shown>>>;
  readonly close?: () => Promise<void>;
}

type OpenScenario = () => Scenario | Promise<Scenario>;

/**
 * `command word key=value`: values are YAML, and quotation marks are around those with spaces. Words and keys that no
 * command has read are an error.
 */
export class CommandLine {
  readonly command: string;
  readonly #words: string[] = [];
  readonly #values = new Map<string, string>();

  constructor(text: string) {
    const [command = "", ...rest] = text.match(/(?:[^\s"]|"[^"]*")+/g) ?? [];
    this.command = command;
    for (const token of rest) {
      const [key = "", ...value] = token.replaceAll('"', "").split("=");
      if (value.length === 0) this.#words.push(key);
      else if (this.#values.has(key)) throw new Error(`${command} has ${key} twice`);
      else this.#values.set(key, value.join("="));
    }
  }

  word(): string {
    return this.#words.shift() ?? fail(`${this.command} wants one more word`);
  }

  /** Returns the words that are left. */
  words(): string[] {
    return this.#words.splice(0);
  }

  /** Returns the values of those of the keys that the line has. */
  values<T extends object>(...keys: (keyof T & string)[]): Partial<T> {
    const found = keys.filter((key) => this.#values.has(key)).map((key) => [key, parse(this.#values.get(key) ?? "")]);
    for (const key of keys) this.#values.delete(key);
    return Object.fromEntries(found);
  }

  /** Returns all keys that are left, with their values as text. */
  pairs(): [key: string, value: string][] {
    const pairs = [...this.#values];
    this.#values.clear();
    return pairs;
  }

  requireEnd(): void {
    const rest = [...this.#words, ...this.#values.keys()];
    if (rest.length > 0) fail(`${this.command} does not know ${rest.join(", ")}`);
  }
}

function fail(message: string): never {
  throw new Error(message);
}

async function run(text: string, { commands }: Scenario): Promise<readonly string[]> {
  const line = new CommandLine(text);
  const command = commands[line.command] ?? fail(`Unknown command "${line.command}"`);
  const shown = (await command(line)) ?? [];
  line.requireEnd();
  const wrong = shown.find((each) => each === "" || each.includes("\n"));
  if (wrong !== undefined) fail(`${line.command} shows an empty line, or two in one: "${wrong}"`);
  return shown;
}

/** Returns the text with the present output of its commands. Errors begin with `name:line: `. */
export async function replay(name: string, text: string, open: OpenScenario): Promise<string> {
  const written: string[] = [];
  let scenario: Scenario | undefined;
  let number = 1;
  try {
    for (const paragraph of text.trimEnd().split("\n\n")) {
      const lines = paragraph.split("\n");
      const end = lines.indexOf("----");
      const input = end < 0 ? lines : lines.slice(0, end);
      const shown: string[] = [];
      for (const [at, line] of input.entries()) {
        number += at === 0 ? 0 : 1;
        if (line.startsWith("== ")) {
          await scenario?.close?.();
          scenario = await open();
        } else if (!line.startsWith("#")) {
          if (end < 0) fail("Want ---- below the commands");
          const now = scenario ?? fail("Want == and a title above the first command");
          for (const command of line.split("; ")) shown.push(...(await run(command, now)));
        }
      }
      if (end >= 0 && input.every((line) => /^(?:#|== )/.test(line))) fail("Want commands above ----");
      written.push([...input, ...(end < 0 ? [] : ["----", ...shown])].join("\n"));
      number += lines.length - input.length + 2;
    }
  } catch (error) {
    throw new Error(`${name}:${number}: ${error instanceof Error ? error.message : error}`, { cause: error });
  } finally {
    await scenario?.close?.();
  }
  return `${written.join("\n\n")}\n`;
}

/** One test replays many scenarios: milliseconds. */
const TIMEOUT_MS = 60_000;

/** Makes a test of each transcript in the folder. */
export function testTranscripts(folder: URL, open: OpenScenario): void {
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".txt"))) {
    const path = fileURLToPath(new URL(name, folder));
    test(name, { timeout: TIMEOUT_MS }, async () => {
      await expect(await replay(name, readFileSync(path, "utf8"), open)).toMatchFileSnapshot(path);
    });
  }
}
