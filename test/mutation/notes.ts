/** Why mutants survive: one list per area. */
import { AGENT_NOTES } from "./notes/agent.ts";
import { CONTROLLER_NOTES } from "./notes/controller.ts";
import { COORDINATOR_NOTES } from "./notes/coordinator.ts";

/** About the mutants of a file whose original text contains `text`, and whose replacement contains `to` if it is given. The first that fits counts. */
export interface Note {
  readonly file: string;
  readonly text: string;
  readonly to?: string;
  /** "equivalent: <reason>", or the level that kills them. */
  readonly note: string;
}

export const NOTES: readonly Note[] = [...AGENT_NOTES, ...CONTROLLER_NOTES, ...COORDINATOR_NOTES];
