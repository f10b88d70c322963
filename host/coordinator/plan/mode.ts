/**
 * Whether a NIC is of an underlay or of an overlay pod (specification 2.3, "Values of mode").
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import type { NamespaceState } from "../../plan/state.ts";
import { POD_VETH } from "./constants.ts";

export interface ModeInput {
  readonly conf: Pick<CoordinatorConf, "mode" | "podDefaultCniNic">;
  readonly ifName: string;
  /** Name of the request's network, for messages. */
  readonly network: string;
  readonly pod: NamespaceState;
  /** Berth has given an address to the pod's first NIC. */
  readonly isFirstNicBerth: boolean;
}

export interface Mode {
  readonly mode: "underlay" | "overlay";
  /** A sentence for the log and for `explain`. */
  readonly reason: string;
}

/** Kinds whose frames leave the node by a NIC of its own; "" is a NIC of the machine or a virtual function of one. */
const UNDERLAY_KINDS: ReadonlySet<string> = new Set(["macvlan", "ipvlan", "vlan", ""]);

function detectMode({ conf, ifName, pod, isFirstNicBerth }: ModeInput): Mode {
  const first = conf.podDefaultCniNic;
  const link = pod.links.find(({ name }) => name === first);
  const hasPair = pod.links.some(({ name }) => name === POD_VETH);
  if (ifName === first) return { mode: "underlay", reason: `"${ifName}" is the pod's first NIC` };
  if (hasPair) return { mode: "underlay", reason: `the pod has "${POD_VETH}"` };
  if (isFirstNicBerth) return { mode: "underlay", reason: `Berth has given "${first}" its address` };
  if (link !== undefined && UNDERLAY_KINDS.has(link.kind)) {
    return { mode: "underlay", reason: `"${first}" is of kind ${link.kind === "" ? "device" : link.kind}` };
  }
  const what = link === undefined ? "is not there" : `is of kind ${link.kind} and another plugin's`;
  return { mode: "overlay", reason: `"${first}" ${what}` };
}

/**
 * Why the first NIC is underlay although the configuration says "overlay"; undefined when it may be as it says. A device of the machine may carry an
 * overlay network, too (a virtual function behind a switch that encapsulates), and Berth gives addresses to bridges: there the configuration is believed.
 */
function findUnderlayReason({ conf, pod }: Pick<ModeInput, "conf" | "pod">): string | undefined {
  const first = conf.podDefaultCniNic;
  const link = pod.links.find(({ name }) => name === first);
  return link !== undefined && link.kind !== "" && UNDERLAY_KINDS.has(link.kind)
    ? `"${first}" is of kind ${link.kind}`
    : undefined;
}

function refuse(text: string): never {
  throw new CniError(ErrorCode.InterfaceRefused, text);
}

/** Refuses what cannot work, naming the interface and the definition to change. */
function requirePossible({ mode }: Mode, question: ModeInput): void {
  const { conf, ifName, network, pod } = question;
  const first = conf.podDefaultCniNic;
  const isFirst = ifName === first;
  const links = pod.links.map(({ name }) => name);
  const hasPair = links.includes(POD_VETH);
  if (!links.includes(ifName))
    refuse(`Interface "${ifName}" is missing in the pod; the coordinator stands after the main plugin`);
  if (mode === "underlay" && !isFirst && !hasPair) {
    refuse(
      `Interface "${ifName}" of network "${network}" is underlay, but the pod has no "${POD_VETH}": ` +
        `add the coordinator to the network definition of the first interface, "${first}"`,
    );
  }
  if (mode === "overlay" && isFirst) {
    refuse(
      `Interface "${ifName}" is the pod's first NIC, which cannot be overlay for the coordinator: ` +
        `set "mode" of network "${network}" to "underlay" or "auto", or remove the coordinator from it`,
    );
  }
  if (mode === "overlay" && hasPair) {
    refuse(
      `Interface "${ifName}" is overlay, but the pod has "${POD_VETH}", so its first NIC is underlay: ` +
        `set "mode" of network "${network}" to "underlay" or "auto"`,
    );
  }
  const why = mode === "overlay" ? findUnderlayReason({ conf, pod }) : undefined;
  if (why !== undefined) {
    refuse(
      `Interface "${ifName}" is overlay, but the pod's first NIC is underlay: ${why}. ` +
        `Set "mode" of network "${network}" to "underlay" or "auto", and give the network of "${first}" a coordinator`,
    );
  }
  if (mode === "overlay" && !links.includes(first)) {
    refuse(
      `Interface "${ifName}" is overlay, but the pod has no first NIC "${first}": ` +
        `set "podDefaultCniNic" of network "${network}" to the name of the first NIC (the pod has ${links.join(", ")})`,
    );
  }
}

/** The mode that holds; undefined for `disable`. Throws CniError 106 for what cannot work. */
export function decideMode(question: ModeInput): Mode | undefined {
  const { mode } = question.conf;
  if (mode === "disable") return undefined;
  const decided = mode === "auto" ? detectMode(question) : { mode, reason: `the configuration says "${mode}"` };
  requirePossible(decided, question);
  return decided;
}
