/** Decides whether a NIC belongs to an underlay or an overlay pod (docs/develop/coordinator.md). */
import { refuseInterface } from "../../cni/error.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import type { NamespaceState } from "../../plan/state.ts";
import { POD_VETH } from "./constants.ts";
import { isNoNic } from "./names.ts";

interface ModeInput {
  readonly conf: Pick<CoordinatorConf, "mode" | "podDefaultCniNic">;
  readonly ifName: string;
  readonly network: string;
  readonly pod: NamespaceState;
  /** Whether Berth allocated the address of the pod's first NIC. */
  readonly isFirstNicBerth: boolean;
}

export interface Mode {
  readonly mode: "underlay" | "overlay";
  /** A clause for the log and for `berthctl explain`. */
  readonly reason: string;
}

/** Kinds of links that connect to the network directly; "" is a physical NIC or a virtual function of one. */
const UNDERLAY_KINDS: ReadonlySet<string> = new Set(["macvlan", "ipvlan", "vlan", ""]);

function detectMode({ conf, ifName, pod, isFirstNicBerth }: ModeInput): Mode {
  const first = conf.podDefaultCniNic;
  const link = pod.links.find(({ name }) => name === first);
  const hasPair = pod.links.some(({ name }) => name === POD_VETH);
  if (ifName === first) return { mode: "underlay", reason: `"${ifName}" is the pod's first NIC` };
  if (hasPair) return { mode: "underlay", reason: `the pod has "${POD_VETH}"` };
  if (isFirstNicBerth) return { mode: "underlay", reason: `Berth allocated the address of "${first}"` };
  if (link !== undefined && UNDERLAY_KINDS.has(link.kind)) {
    return { mode: "underlay", reason: `"${first}" leads to the network directly` };
  }
  // runtimes without a first NIC of their own, such as Podman, attach networks in any order
  if (pod.links.every(({ name, kind }) => name === ifName || isNoNic(name) || UNDERLAY_KINDS.has(kind)))
    return { mode: "underlay", reason: "no NIC of the pod belongs to another plugin" };
  const what = link === undefined ? "does not exist" : `is of kind ${link.kind} and belongs to another plugin`;
  return { mode: "overlay", reason: `"${first}" ${what}` };
}

/**
 * Throws CniError 106 for a mode that cannot work, and names the interface and the definition to change. "overlay" is
 * believed of a physical device, which may carry an overlay network, too (a virtual function behind a switch that
 * encapsulates), and of a bridge's, for which Berth allocates addresses.
 */
function requirePossible({ mode }: Mode, { conf, ifName, network, pod }: ModeInput): void {
  const first = conf.podDefaultCniNic;
  const links = pod.links.map(({ name }) => name);
  const firstLink = pod.links.find(({ name }) => name === first);
  if (!links.includes(ifName))
    refuseInterface(
      `Interface "${ifName}" does not exist in the pod; put the coordinator after the main plugin in "plugins"`,
    );
  if (mode !== "overlay") return;
  if (ifName === first)
    refuseInterface(
      `Interface "${ifName}" is the pod's first NIC, which cannot be overlay: ` +
        `set "mode" of network "${network}" to "underlay" or "auto", or remove the coordinator from it`,
    );
  if (links.includes(POD_VETH))
    refuseInterface(
      `Interface "${ifName}" is overlay, but the pod has "${POD_VETH}", so its first NIC is underlay: ` +
        `set "mode" of network "${network}" to "underlay" or "auto"`,
    );
  if (firstLink === undefined)
    refuseInterface(
      `Interface "${ifName}" is overlay, but the pod has no first NIC "${first}": ` +
        `set "podDefaultCniNic" of network "${network}" to the name of the first NIC (the pod has ${links.join(", ")})`,
    );
  if (firstLink.kind !== "" && UNDERLAY_KINDS.has(firstLink.kind))
    refuseInterface(
      `Interface "${ifName}" is overlay, but the pod's first NIC is underlay: "${first}" is of kind ${firstLink.kind}. ` +
        `Set "mode" of network "${network}" to "underlay" or "auto", and give the network of "${first}" a coordinator`,
    );
}

/** Returns the mode; undefined for `disable`. Throws CniError 106 for a mode that cannot work. */
export function decideMode(question: ModeInput): Mode | undefined {
  const { mode } = question.conf;
  if (mode === "disable") return undefined;
  const decided = mode === "auto" ? detectMode(question) : { mode, reason: `the configuration says "${mode}"` };
  requirePossible(decided, question);
  return decided;
}
