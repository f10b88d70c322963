/** A scene of a story as an animated SVG: its lines appear at the pace of a reader, and the page scrolls. */
const COLUMNS = 120;
const ROWS = 34;
const FONT_PX = 13;
const LINE_PX = 18;
const MARGIN_PX = 14;
const LINE_MS = 60;
/** A command is read before it is executed, and before its output comes. */
const READING_MS = 900;

/** Returns the document. It plays once, and stands still at its end for readers who prefer reduced motion. */
export function renderRecording(title: string, printed: readonly string[]): string {
  const lines = sceneOf(title, printed).flatMap((text) =>
    text
      .replace(/^\n|^ {3}/gm, "")
      .split("\n")
      .flatMap(fold),
  );
  let clockMs = 0;
  const times = lines.map((text, index) => {
    clockMs += [text, lines[index - 1] ?? ""].some((each) => classOf(each) === "command") ? READING_MS : LINE_MS;
    return clockMs;
  });
  const totalMs = clockMs + READING_MS;
  const width = Math.ceil(COLUMNS * FONT_PX * 0.6 + 2 * MARGIN_PX);
  const height = Math.min(lines.length, ROWS) * LINE_PX + 2 * MARGIN_PX;
  const hidden = Math.max(0, lines.length - ROWS) * LINE_PX;
  const frames = times.slice(ROWS).map((atMs, index) => {
    return `${((atMs / totalMs) * 100).toFixed(2)}%{transform:translateY(-${(index + 1) * LINE_PX}px)}`;
  });
  const rows = lines.map((text, index) => {
    const y = MARGIN_PX + (index + 1) * LINE_PX - 5;
    return `<text x="${MARGIN_PX}" y="${y}" class="${classOf(text)}" style="animation-delay:${times[index]}ms">${escapeXml(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(title)}">
<title>${escapeXml(title)}</title>
<style>
text{font:${FONT_PX}px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#d8dee9;opacity:0;animation:show 1ms linear forwards}
.command{fill:#fff;font-weight:bold}.good{fill:#a3be8c}.title{fill:#88c0d0;font-weight:bold}
@keyframes show{to{opacity:1}}
@keyframes scroll{0%{transform:none}${frames.join("")}to{transform:translateY(-${hidden}px)}}
#page{animation:scroll ${totalMs}ms step-end forwards}
@media (prefers-reduced-motion:reduce){text{opacity:1;animation:none}#page{animation:none;transform:translateY(-${hidden}px)}}
</style>
<rect width="${width}" height="${height}" rx="6" fill="#2e3440"/>
<svg y="${MARGIN_PX / 2}" width="${width}" height="${height - MARGIN_PX}"><g id="page">
${rows.join("\n")}
</g></svg>
</svg>
`;
}

/** The lines of the scene, up to the next one. */
function sceneOf(title: string, printed: readonly string[]): readonly string[] {
  const starts = [...printed.keys()].filter((index) => /^\n\d+\. /.test(printed[index] ?? ""));
  const start = starts.find((index) => printed[index]?.includes(title));
  return printed.slice(start, starts[starts.indexOf(start ?? 0) + 1]);
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
