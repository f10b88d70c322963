/**
 * Other IPAMs, which the benchmark `peers` measures beside Berth: whereabouts, and Spiderpool's plugins, agent and
 * controller.
 * Effects: the user's cache; nothing in the repository.
 */
import { goStep } from "./go.mjs";

export function peersSteps() {
  return [
    goStep({ tool: "whereabouts", title: "whereabouts (minutes, the first time)", rename: { cmd: "whereabouts" } }),
    // Go's database of checksums cannot serve a module of a private repository among its dependencies; go.sum has the
    // sums of the others.
    goStep({ tool: "spiderpool", title: "Spiderpool (minutes, the first time)" }),
  ];
}
