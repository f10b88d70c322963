/** Journals that are damaged under their agents. */
import type { Action } from "./profiles.ts";
import type { DamagedPart } from "./simulated-store.ts";

const INDEXES: readonly DamagedPart[] = ["by_owner", "by_container", "cooling"];

/** All rows can still be read. */
export const DAMAGE_INDEX: Action = {
  name: "an index of a journal is damaged",
  weight: 3,
  act: (cluster, random) => random.pick(cluster.nodes).machine.damageJournal(random.pick(INDEXES)),
};

/** The next agent compares the journal. */
export const DAMAGE_AND_KILL: Action = {
  name: "a journal is damaged, and its agent is killed",
  weight: 3,
  act: (cluster, random, time) => {
    const { machine } = random.pick(cluster.nodes);
    if (!machine.damageJournal("allocation")) return;
    time.schedule(random.below(50), "an agent is killed", time.current, () => {
      machine.kill();
      machine.start();
    });
  },
};

export const DAMAGE: Action = {
  name: "a journal is damaged",
  weight: 8,
  act: (cluster, random) => {
    random.pick(cluster.nodes).machine.damageJournal("allocation");
  },
};
