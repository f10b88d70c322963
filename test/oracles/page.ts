/** The page docs/develop/oracles.md: which oracle notices which fault, as `npm run oracles` has measured it. */
import { FAULTS } from "../simulation/faults/faults.ts";
import { FINDING_NAMES } from "../simulation/open-findings.ts";
import { FIELD_FAULTS } from "./field.ts";

/** The oracles, each with the unit in which it says how soon it has noticed. */
export const ORACLES = {
  simulation: "steps",
  search: "states",
  observer: "s",
  history: "s",
} as const;
export type Oracle = keyof typeof ORACLES;

/** A fault as an oracle has noticed it. */
export interface Notice {
  /** In the oracle's unit. */
  readonly after: number;
  /** Where: profile and seed, scene, or test. */
  readonly where: string;
}

/**
 * By the fault's name and the oracle; null: it was asked and has noticed nothing. One that was not asked is absent.
 */
export type Measured = Readonly<Record<string, Partial<Record<Oracle, Notice | null>>>>;

const INTRODUCTION = `# Oracles

Four oracles see what happens to addresses, and share no assumption with the product:

| Oracle | Sees | Page |
|---|---|---|
| simulation | every step of agents and controllers in simulated time, with faults | [simulation.md](simulation.md) |
| search | every interleaving of the decisions about one address | [test/property/registry/search](../../test/property/registry/search) |
| observer | which MAC address answers for which address on the wire, and what is on each NIC, beside the records | [test/lab](../../test/lab/README.md) |
| history | every revision of every record in etcd, beside the answers to ADDs; Porcupine decides where no order exists | [test/lab](../../test/lab/README.md) |

\`npm run oracles\` switches each fault on by its name, asks each oracle, and writes this page; \`-- --only TEXT\` asks about some.
A cell says after how many steps, states or seconds the oracle noticed; –: it did not; empty: it was not asked.
`;

function cell(oracle: Oracle, notice: Notice | null | undefined): string {
  if (notice === undefined) return "";
  if (notice === null) return "–";
  const { after, where } = notice;
  const number = oracle === "observer" || oracle === "history" ? after.toFixed(1) : after.toLocaleString("en");
  return `${number} ${ORACLES[oracle]} (${where})`;
}

function tableOf(names: readonly string[], measured: Measured): string {
  const oracles = Object.keys(ORACLES) as Oracle[];
  const rows = names.map(
    (name) => `| ${name} | ${oracles.map((each) => cell(each, measured[name]?.[each])).join(" | ")} |`,
  );
  return [`| Fault | ${oracles.join(" | ")} |`, `|---|${"---|".repeat(oracles.length)}`, ...rows].join("\n");
}

/** `fixed`: as measured before each was fixed. */
export function oraclesPage(measured: Measured, fixed: Measured): string {
  const field = FIELD_FAULTS.map(({ kind, oracles }) => `| ${kind} | ${oracles} |`);
  return `${INTRODUCTION}
## Known faults of today's product

Tests expect them, and fail when one is gone and still listed ([open-findings.ts](../../test/simulation/open-findings.ts), the search's
\`RELIANCES\`, [observer.test.ts](../../test/cluster/observer.test.ts)).

${tableOf(FINDING_NAMES, measured)}

## Known faults that are fixed

As they were noticed on the product that had them. Some are faults below, in which the repair is switched off.

${tableOf(Object.keys(fixed), fixed)}

## Faults that are switched on

[faults.ts](../../test/simulation/faults/faults.ts) replaces a decision, a port or a limit of the product by one that does not keep its promise.

${tableOf(Object.keys(FAULTS), measured)}

## Kinds that users report

| Kind | Oracles |
|---|---|
${field.join("\n")}
`;
}
