/** The figures of the cluster's benchmark as a table, and the design's targets against them. */
import type { Table, Target } from "../harness/report.ts";
import type { Sample } from "../harness/runner.ts";
import { formatFigure, mean, percentile } from "../harness/statistics.ts";
import type { Measured } from "../ipam/measure.ts";
import type { Series } from "../ipam/tabulate.ts";

const HOST_LOCAL = "host-local, empty /24";
const BARE = "one bare create, one delete";
const AHEAD = "berth in a cluster, claimed ahead";
const PLAIN = "berth in a cluster, nothing claimed ahead";

const COLUMNS = [
  "IPAM in a cluster",
  "ADD p50",
  "p99",
  "of host-local's",
  "of a bare create",
  "DEL p50",
  "p99",
  "CPU per ADD: plugin + agent",
  "40 at once: ADD/s",
  "DEL/s",
  "agent MiB",
];

export function tabulate({ single, atOnce }: Series): Table {
  const ratio = (measured: Measured, base: string): string => {
    const found = single.find(({ name }) => name === base);
    return found === undefined ? "-" : formatFigure(wall(measured.add, 0.5) / wall(found.add, 0.5));
  };
  const rows = single.map((measured) => {
    const rates = atOnce.find(({ name }) => name === measured.name);
    const plugin = mean(measured.add.map(({ cpuMs }) => cpuMs));
    return [
      measured.name,
      formatFigure(wall(measured.add, 0.5)),
      formatFigure(wall(measured.add, 0.99)),
      ratio(measured, HOST_LOCAL),
      ratio(measured, BARE),
      formatFigure(wall(measured.del, 0.5)),
      formatFigure(wall(measured.del, 0.99)),
      measured.name === BARE ? "-" : `${formatFigure(plugin)} + ${formatFigure(mean(measured.daemonAddMs))}`,
      formatFigure(percentile(rates?.addRates ?? [], 0.5)),
      formatFigure(percentile(rates?.delRates ?? [], 0.5)),
      rates?.rssMib === undefined ? "-" : formatFigure(rates.rssMib),
    ];
  });
  return { title: "ADD and DEL", columns: COLUMNS, rows };
}

export function targetsOf({ single }: Series): Target[] {
  const of = (name: string): readonly Sample[] => single.find((measured) => measured.name === name)?.add ?? [];
  const compare = (what: string, name: string, share: number, limit: number, base: string, whose: string): Target => {
    const [value, against] = [wall(of(name), share), wall(of(base), share)];
    return {
      what: `ADD p${share * 100}, ${what}`,
      wanted: `≤ ${limit} × ${whose}`,
      measured: `${formatFigure(value / against)} × (${formatFigure(value)} of ${formatFigure(against)} ms)`,
      isMet: value <= limit * against,
    };
  };
  return [0.5, 0.99].flatMap((share) => [
    compare("claimed ahead", AHEAD, share, 0.5, HOST_LOCAL, "host-local's"),
    compare("nothing claimed ahead", PLAIN, share, 2, BARE, "one bare create"),
  ]);
}

function wall(samples: readonly Sample[], share: number): number {
  return percentile(
    samples.map(({ wallMs }) => wallMs),
    share,
  );
}
