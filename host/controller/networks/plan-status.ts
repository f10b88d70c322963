/** The status of the Coordinator, from its specification and the sources of the cluster's networks. */
import { formatPrefix, type Prefix, parsePrefixOrIp } from "../../net/prefix.ts";
import type { ControlledCoordinator } from "../objects.ts";
import type { NetworkFinding } from "./finding.ts";
import { findPodNetworks, findServiceNetworks } from "./plan-networks.ts";
import type { SourceStates } from "./sources.ts";

/** Longest part of a Coordinator's `status.reason`, which has two: characters. */
export const MAX_FINDING_LENGTH = 480;

export interface NetworksStatus {
  readonly phase: "Synced" | "NotReady";
  /** The source of each key; problems come first. */
  readonly reason: string;
  readonly overlayPodCIDR: readonly string[];
  readonly serviceCIDR: readonly string[];
}

type Key = "overlayPodCIDR" | "serviceCIDR";

/** The result for one key. */
interface Outcome {
  readonly key: Key;
  readonly isKnown: boolean;
  readonly text: string;
  readonly networks: readonly string[];
}

/**
 * Returns undefined if a source has not answered yet, but may at any moment. While a source cannot be read, is
 * malformed or contradicts another one, the networks found earlier stay, and agents keep using them. They go when all
 * sources say that there are none.
 */
export function planStatus(
  { value, fault, status }: ControlledCoordinator,
  states: SourceStates,
): NetworksStatus | undefined {
  const before = (key: Key): readonly string[] => knownBefore(status[key]);
  if (value === undefined) {
    const networks = { overlayPodCIDR: before("overlayPodCIDR"), serviceCIDR: before("serviceCIDR") };
    return {
      phase: "NotReady",
      reason: cut(`The specification is invalid: ${fault ?? "unknown reason"}`),
      ...networks,
    };
  }
  const { spec } = value;
  const services =
    wanted("serviceCIDR", spec.serviceCIDR) ?? outcomeOf("serviceCIDR", findServiceNetworks(states), before);
  const pods =
    wanted("overlayPodCIDR", spec.overlayPodCIDR) ??
    (spec.podCIDRType === "none"
      ? { key: "overlayPodCIDR" as const, isKnown: true, text: "none, since podCIDRType is none", networks: [] }
      : outcomeOf("overlayPodCIDR", findPodNetworks(spec.podCIDRType, states), before));
  if (services === undefined || pods === undefined) return undefined;
  const both = [services, pods];
  const inOrder = [...both.filter(({ isKnown }) => !isKnown), ...both.filter(({ isKnown }) => isKnown)];
  return {
    phase: both.every(({ isKnown }) => isKnown) ? "Synced" : "NotReady",
    reason: inOrder.map(({ key, text }) => `${key}: ${cut(text)}`).join("; "),
    overlayPodCIDR: pods.networks,
    serviceCIDR: services.networks,
  };
}

/** The specification wins; an empty list does not count. */
function wanted(key: Key, networks: readonly Prefix[] = []): Outcome | undefined {
  if (networks.length === 0) return undefined;
  return { key, isKnown: true, text: "as the specification says", networks: networks.map(formatPrefix) };
}

function outcomeOf(key: Key, finding: NetworkFinding, before: (key: Key) => readonly string[]): Outcome | undefined {
  switch (finding.kind) {
    case "found":
      return { key, isKnown: true, text: `of ${finding.place}`, networks: finding.networks.map(formatPrefix) };
    case "absent":
      return { key, isKnown: false, text: `nothing in ${finding.places.join(", ")}`, networks: [] };
    case "wrong":
      return { key, isKnown: false, text: finding.reason, networks: before(key) };
    case "unread": {
      if (finding.problem === undefined) return undefined;
      const text = `${finding.place} cannot be read: ${finding.problem}`;
      return { key, isKnown: false, text, networks: before(key) };
    }
  }
}

/** The status may have been edited by hand: it is used only if all of it is valid. */
function knownBefore(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.every((text) => typeof text === "string" && parsePrefixOrIp(text) !== undefined) ? value : [];
}

function cut(text: string): string {
  // The API server would replace half a surrogate pair.
  const whole = text.toWellFormed();
  return whole.length > MAX_FINDING_LENGTH ? `${whole.slice(0, MAX_FINDING_LENGTH - 1)}…`.toWellFormed() : whole;
}

/** Returns whether the object has this status already. */
export function isStatus({ status }: ControlledCoordinator, planned: NetworksStatus): boolean {
  return Object.entries(planned).every(([key, value]) => JSON.stringify(status[key]) === JSON.stringify(value));
}
