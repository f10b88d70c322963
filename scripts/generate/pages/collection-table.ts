/** The table of plan-collection.ts, for docs/develop/garbage-collection.md. */
import {
  type Action,
  COLLECTION_ROWS,
  type CollectionRow,
  PAUSES,
} from "../../../host/controller/gc/plan-collection.ts";

const ACTIONS: Readonly<Record<Action, string>> = {
  keep: "stays",
  wait: "stays; observation kept",
  preserve: "→ Kept",
  cool: "→ Cooling",
  quarantine: "→ Quarantined(NodeLost)",
  ask: "another node probes it",
  tell: "stays; agents read it again",
  free: "free",
};

const STATES: Readonly<Record<CollectionRow["state"], string>> = {
  Bound: "Bound",
  Cooling: "Cooling",
  Kept: "Kept",
  NodeLost: "Quarantined(NodeLost)",
  Conflict: "Quarantined(Conflict)",
};

const WORDS: Readonly<Record<string, string>> = {
  notReady: "not ready",
  outOfService: "out of service",
  replaced: "of another UID",
  outliving: "one of two ended on a ready node, the other alive",
  unconfirmed: "two ended, one on a ready or not ready node",
  none: "none",
};

function words(values: readonly string[] | undefined): string {
  return values === undefined ? "" : values.map((value) => WORDS[value] ?? value).join(", ");
}

/** One line for each row, in the order in which they are tried. */
export function collectionTable(): string {
  const head = [
    "| State | Node | Pod | Workload | Prober | Observed for | Result | Why |",
    "|---|---|---|---|---|---|---|---|",
  ];
  const lines = COLLECTION_ROWS.map(({ state, node, pod, owner, prober, isTold, after, action, why }) =>
    [
      "",
      STATES[state],
      words(node),
      words(pod),
      words(owner),
      words(prober),
      `${after === undefined ? "" : PAUSES[after].text}${isTold === false ? "; once for a version" : ""}`,
      ACTIONS[action],
      why,
      "",
    ]
      .join(" | ")
      .trim(),
  );
  return [...head, ...lines, ""].join("\n");
}
