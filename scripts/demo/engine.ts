/**
 * The engine of all demos. A story is a place and scenes; the engine builds the place, tells one scene after the other,
 * stops at the first claim that does not come true, and removes the place in any case.
 */
import type { Netns } from "../../test/lab/netns.ts";
import { eventually } from "../../test/lab/waiting.ts";

export interface Scene<Place> {
  readonly title: string;
  readonly text: string | ((place: Place) => string);
  readonly act: (place: Place, narrator: Narrator) => Promise<void>;
}

export interface Story<Place> {
  /** Resources in the stack are removed at the end, also when something here fails. */
  readonly open: (stack: AsyncDisposableStack, narrator: Narrator) => Promise<Place>;
  readonly scenes: readonly Scene<Place>[];
  /** The sights before the last scene. */
  readonly sight?: (place: Place) => string;
}

interface Options {
  readonly interrupted: AbortSignal;
  /** Waits before the last scene, until the promise resolves. */
  readonly stay?: ((sight: string) => Promise<void>) | undefined;
}

/** Rejects with StoryError when a claim fails, and when it is interrupted. Returns the output. */
export async function tell<Place>(story: Story<Place>, { interrupted, stay }: Options): Promise<readonly string[]> {
  const startMs = performance.now();
  const narrator = new Narrator(interrupted);
  await using stack = new AsyncDisposableStack();
  console.log(
    "Berth gives pods their addresses. This demo uses network namespaces of its own; this machine's network stays as it is.",
  );
  const place = await story.open(stack, narrator);
  for (const { title, text, act } of story.scenes) {
    if (title === story.scenes.at(-1)?.title) await stay?.(story.sight?.(place) ?? "");
    narrator.scene(title, typeof text === "string" ? text : text(place));
    await act(place, narrator);
  }
  await stack.disposeAsync();
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`\n${narrator.claims} claims, all true, in ${seconds} s; everything has been removed.`);
  return narrator.printed;
}

/** A claim that did not come true, or an interruption; the story ends here. */
export class StoryError extends Error {
  override readonly name = "StoryError";
}

const WIDTH = 110;
const PATIENCE_MS = 60_000;

/** The demo's voice: scenes, remarks, and claims that are checked before they are made. */
export class Narrator {
  readonly printed: string[] = [];
  claims = 0;
  readonly #interrupted: AbortSignal;
  #scenes = 0;

  constructor(interrupted: AbortSignal) {
    this.#interrupted = interrupted;
  }

  scene(title: string, text: string): void {
    this.#print(`\n${++this.#scenes}. ${title}\n${wrap(text)}`);
  }

  remark(text: string): void {
    this.#print(wrap(text));
  }

  /** Lines that belong together, indented. */
  lines(lines: readonly string[]): void {
    this.#print(lines.map((line) => `     ${line}`.trimEnd()).join("\n"));
  }

  /** Columns as wide as their widest cell. */
  table(heading: string, rows: readonly (readonly string[])[]): void {
    const all = [heading.split(" "), ...rows];
    const widths = heading.split(" ").map((_, index) => Math.max(...all.map((row) => (row[index] ?? "").length)));
    const format = (row: readonly string[]) =>
      widths.map((width, index) => (row[index] ?? "").padEnd(width)).join("  ");
    this.lines(all.map(format));
  }

  /** A command line and its output. */
  command(line: string, output: string): void {
    this.#print(`\n   $ ${line}`);
    this.#print(output.trimEnd().replace(/^/gm, "   "));
  }

  /** Prints the claim with the observation, and throws unless it holds. */
  claim(what: string, holds: boolean, seen: string): void {
    this.#print(`   ${holds ? "✓" : "✗ NOT TRUE:"} ${what}: ${seen.replaceAll("\n", "\n     ")}`);
    if (!holds) throw new StoryError(`Claim "${what}" is not true: ${seen}`);
    this.claims++;
  }

  /** Claims that something becomes true: asks until `look` accepts the answer, and returns it. */
  async becomes<T>(what: string, ask: () => Promise<T>, look: (answer: T) => Look): Promise<T> {
    const answer = await eventually(ask, (each) => look(each)[0], PATIENCE_MS);
    this.claim(what, ...look(answer));
    return answer;
  }

  /** Claims that a ping is answered. */
  async reaches(what: string, from: Netns, address: string): Promise<void> {
    const { answered, seen } = await ping(from, address);
    this.claim(what, answered, seen);
  }

  #print(text: string): void {
    if (this.#interrupted.aborted) throw new StoryError("Interrupted");
    console.log(text);
    this.printed.push(text);
  }
}

export async function ping(from: Netns, address: string, waitS = 2) {
  const { exitCode, stdout, stderr } = await from.exec(["ping", "-n", "-c", "1", "-W", `${waitS}`, address]);
  const summary = stdout.split("\n").find((line) => line.includes("packets transmitted")) ?? stderr.trim();
  return { answered: exitCode === 0, seen: `${address}: ${summary}` };
}

/** Whether it is so, and the observation. */
type Look = readonly [isSo: boolean, seen: string];

interface AddressLine {
  readonly addr_info: readonly { readonly local: string; readonly scope: string; readonly tentative?: boolean }[];
}

/**
 * Returns the interface's global addresses without length, sorted, once there are as many as wanted: the kernel holds
 * an IPv6 address back for a second or two (RFC 4862 §5.4).
 */
export function addressesOn(netns: Netns, ifName: string, wanted: number): Promise<string[]> {
  const ask = async (): Promise<string[]> => {
    const links = await netns.ipJson<AddressLine>(`addr show dev ${ifName}`);
    const all = links.flatMap((link) => link.addr_info);
    return all.flatMap(({ local, scope, tentative }) => (scope === "global" && !tentative ? [local] : [])).sort();
  };
  return eventually(ask, (found) => found.length === wanted, 5_000);
}

function wrap(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map((line) => `   ${line}`).join("\n");
}
