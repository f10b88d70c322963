/** Line plots as SVG text: named series over the same named places, a logarithmic axis. */

export interface Series {
  readonly name: string;
  /** One for each place; NaN where there is none. */
  readonly values: readonly number[];
}

export interface Plot {
  readonly title: string;
  /** Unit of the axis: `milliseconds`. */
  readonly unit: string;
  readonly places: readonly string[];
  readonly series: readonly Series[];
}

const WIDTH = 820;
const HEIGHT = 380;
const LEFT = 60;
const RIGHT = 270;
const TOP = 44;
const BOTTOM = 58;
const COLOURS = ["#1b6ca8", "#d1495b", "#3c8d5a", "#8a6d3b", "#6a4c93", "#c2741f", "#5b6770"];
const TICKS = [-2, -1, 0, 1, 2, 3, 4].flatMap((power) => [1, 2, 5].map((digit) => Number(`${digit}e${power}`)));

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

function text(x: number, y: number, words: string, extra = ""): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${extra}>${escapeXml(words)}</text>`;
}

export function renderPlot({ title, unit, places, series }: Plot): string {
  const all = series.flatMap(({ values }) => values).filter(Number.isFinite);
  const low = Math.min(...all) / 1.3;
  const high = Math.max(...all) * 1.3;
  const x = (index: number) => LEFT + ((WIDTH - LEFT - RIGHT) * index) / Math.max(1, places.length - 1);
  const y = (value: number) =>
    TOP + (HEIGHT - TOP - BOTTOM) * (1 - (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low)));
  const grid = TICKS.filter((tick) => tick >= low && tick <= high).map((tick) => {
    const at = y(tick);
    const line = `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at.toFixed(1)}" y2="${at.toFixed(1)}" stroke="#ddd"/>`;
    return line + text(LEFT - 8, at + 4, String(tick), 'text-anchor="end"');
  });
  const labels = places.map((place, index) => text(x(index), HEIGHT - BOTTOM + 20, place, 'text-anchor="middle"'));
  const lines = series.map(({ name, values }, index) => {
    const colour = COLOURS[index % COLOURS.length];
    const points = values.flatMap((value, place) =>
      Number.isFinite(value) ? [`${x(place).toFixed(1)},${y(value).toFixed(1)}`] : [],
    );
    const dots = points.map((point) => {
      const [cx, cy] = point.split(",");
      return `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`;
    });
    const legend = TOP + 10 + index * 20;
    const key = `<line x1="${WIDTH - RIGHT + 14}" x2="${WIDTH - RIGHT + 36}" y1="${legend - 4}" y2="${legend - 4}" stroke="${colour}" stroke-width="2"/>`;
    const line = `<polyline points="${points.join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>`;
    return line + dots.join("") + key + text(WIDTH - RIGHT + 42, legend, name);
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    text(LEFT, 22, title, 'font-size="14" font-weight="bold"'),
    text(LEFT, HEIGHT - 14, `${unit}, logarithmic`, 'fill="#555"'),
    ...grid,
    ...labels,
    ...lines,
    "</svg>",
    "",
  ].join("\n");
}
