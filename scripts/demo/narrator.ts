/** The demo's voice: scenes, remarks, and claims that are checked before they are made. */

/** A claim that did not come true, or an interruption; the story ends here. */
export class StoryError extends Error {
  override readonly name = "StoryError";
}

export interface Narrator {
  /** Throws when the user has interrupted: no scene begins after that. */
  scene(title: string, text: string): void;
  /** Prints `what` with what was seen, and throws unless it `holds`. */
  claim(what: string, holds: boolean, seen: string): void;
  remark(text: string): void;
  /** A command line and what it printed. */
  command(line: string, output: string): void;
  /** Lines that belong together, indented. */
  lines(lines: readonly string[]): void;
  readonly claims: number;
}

const WIDTH = 110;

/** `print` gets one or more lines at a time. */
export function openNarrator(interrupted: AbortSignal, print: (text: string) => void = console.log): Narrator {
  let scenes = 0;
  let claims = 0;
  return {
    scene: (title, text) => {
      if (interrupted.aborted) throw new StoryError("Interrupted");
      print(`\n${++scenes}. ${title}\n${indent(wrap(text))}`);
    },
    claim: (what, holds, seen) => {
      if (interrupted.aborted) throw new StoryError("Interrupted");
      print(`   ${holds ? "✓" : "✗ NOT TRUE:"} ${what}: ${seen.replaceAll("\n", "\n     ")}`);
      if (!holds) throw new StoryError(`Claim "${what}" is not true: ${seen}`);
      claims++;
    },
    remark: (text) => print(indent(wrap(text))),
    command: (line, output) => {
      print(`\n   $ ${line}`);
      print(output.trimEnd().replace(/^/gm, "   "));
    },
    lines: (lines) => print(lines.map((line) => `     ${line}`.trimEnd()).join("\n")),
    get claims() {
      return claims;
    },
  };
}

/** Columns as wide as their widest cell. */
export function formatColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => (row[index] ?? "").length)));
  return rows.map((row) =>
    widths
      .map((width, index) => (row[index] ?? "").padEnd(width))
      .join("  ")
      .trimEnd(),
  );
}

function indent(lines: readonly string[]): string {
  return lines.map((line) => `   ${line}`).join("\n");
}

function wrap(text: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
