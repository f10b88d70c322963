/**
 * A terminal session as an animated SVG: each line appears when it was printed, long pauses shortened, and the page
 * scrolls.
 */

export interface PrintedLine {
  readonly text: string;
  /** Milliseconds since any moment. */
  readonly atMs: number;
}

const COLUMNS = 120;
const ROWS = 34;
const FONT_PX = 13;
const LINE_PX = 18;
const CHARACTER_PX = FONT_PX * 0.6;
const MARGIN_PX = 14;
const LONGEST_PAUSE_MS = 1_500;
const SHORTEST_PAUSE_MS = 40;
/** A command is read before its output comes. */
const READING_MS = 900;

/** Returns the document. It plays once, and stands still at its end for readers who prefer reduced motion. */
export function renderRecording(title: string, printed: readonly PrintedLine[]): string {
  const lines = printed.flatMap(({ text, atMs }) =>
    text
      .split("\n")
      .flatMap(fold)
      .map((line) => ({ text: line, atMs })),
  );
  const times = paceOf(lines);
  const totalMs = (times.at(-1) ?? 0) + LONGEST_PAUSE_MS;
  const width = Math.ceil(COLUMNS * CHARACTER_PX + 2 * MARGIN_PX);
  const height = Math.min(lines.length, ROWS) * LINE_PX + 2 * MARGIN_PX;
  const hidden = Math.max(0, lines.length - ROWS) * LINE_PX;
  const rows = lines.map(({ text }, index) => {
    const y = MARGIN_PX + (index + 1) * LINE_PX - 5;
    return `<text x="${MARGIN_PX}" y="${y}" class="${classOf(text)}" style="animation-delay:${times[index]}ms">${escapeXml(text)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(title)}">`,
    `<title>${escapeXml(title)}</title>`,
    "<style>",
    `text{font:${FONT_PX}px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#d8dee9;opacity:0;animation:show 1ms linear forwards}`,
    ".command{fill:#fff;font-weight:bold}.good{fill:#a3be8c}.title{fill:#88c0d0;font-weight:bold}",
    "@keyframes show{to{opacity:1}}",
    `@keyframes scroll{${scrollFrames(times, totalMs)}}`,
    `#page{animation:scroll ${totalMs}ms step-end forwards}`,
    `@media (prefers-reduced-motion:reduce){text{opacity:1;animation:none}#page{animation:none;transform:translateY(-${hidden}px)}}`,
    "</style>",
    `<rect width="${width}" height="${height}" rx="6" fill="#2e3440"/>`,
    `<svg y="${MARGIN_PX / 2}" width="${width}" height="${height - MARGIN_PX}"><g id="page">`,
    ...rows,
    "</g></svg>",
    "</svg>",
    "",
  ].join("\n");
}

/** When each line appears: milliseconds since the start. */
function paceOf(lines: readonly PrintedLine[]): number[] {
  let clockMs = 0;
  return lines.map(({ text, atMs }, index) => {
    const before = lines[index - 1];
    if (before === undefined) return clockMs;
    const pauseMs = classOf(before.text) === "command" ? READING_MS : Math.max(SHORTEST_PAUSE_MS, atMs - before.atMs);
    clockMs += Math.min(Math.round(pauseMs), LONGEST_PAUSE_MS);
    if (classOf(text) === "command") clockMs += READING_MS;
    return clockMs;
  });
}

function scrollFrames(times: readonly number[], totalMs: number): string {
  const frames = times.slice(ROWS).map((atMs, index) => {
    const percent = ((atMs / totalMs) * 100).toFixed(2);
    return `${percent}%{transform:translateY(-${(index + 1) * LINE_PX}px)}`;
  });
  const last = Math.max(0, times.length - ROWS) * LINE_PX;
  return ["0%{transform:none}", ...frames, `to{transform:translateY(-${last}px)}`].join("");
}

function classOf(text: string): string {
  if (/^\s*\$ /.test(text)) return "command";
  if (/^\s*✓ /.test(text)) return "good";
  return /^\d+\. /.test(text) ? "title" : "output";
}

/** As a terminal breaks a long line. */
function fold(line: string): string[] {
  const pieces: string[] = [];
  for (let from = 0; from === 0 || from < line.length; from += COLUMNS) pieces.push(line.slice(from, from + COLUMNS));
  return pieces;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
