/**
 * One change of a namespace, with its inverse. What is done is a list of these, and what is undone is the same list backwards.
 */
import type { Mac } from "../net/mac.ts";
import type { BondSettings } from "./bond.ts";
import type { NftTable } from "./nft-table.ts";
import type { AddressState, LinkSettings, NeighbourState, Place, RouteState, RuleState, SysctlKey } from "./state.ts";

export interface VethEnd {
  readonly name: string;
  readonly mac: Mac;
}

/** A pair with one end in each namespace, both down. */
export type Veth = Readonly<Record<Place, VethEnd>>;

/** A link made on other links. A new one is down, and a new bond has no members. */
export type Device =
  /** 802.1Q on the link `parent`. */
  | { readonly kind: "vlan"; readonly name: string; readonly parent: string; readonly id: number }
  /** Members take over the MTU of their bond. */
  | {
      readonly kind: "bond";
      readonly name: string;
      readonly mtu?: number | undefined;
      readonly settings: BondSettings;
    };

/**
 * The kernel takes the first of several routes for one destination with one metric, which some plugins leave behind. One in the middle comes
 * back as the last.
 */
export type RouteRank = "first" | "last";

export type Operation =
  | { readonly kind: "add-veth" | "delete-veth"; readonly veth: Veth }
  | { readonly kind: "add-device" | "delete-device"; readonly place: Place; readonly device: Device }
  /** `from` is what takes it back: what the bond had of `to`, and what it loses with that. */
  | {
      readonly kind: "set-bond";
      readonly place: Place;
      readonly link: string;
      readonly from: BondSettings;
      readonly to: BondSettings;
    }
  /** Asks whether the bond would take a link that is up, before it is set down. Changes nothing. */
  | { readonly kind: "try-member"; readonly place: Place; readonly link: string; readonly bond: string }
  /** `from` has the keys of `to`. */
  | {
      readonly kind: "set-link";
      readonly place: Place;
      readonly link: string;
      readonly from: LinkSettings;
      readonly to: LinkSettings;
    }
  /** `from` is undefined when the link that it belongs to was not there before. */
  | {
      readonly kind: "set-sysctl";
      readonly place: Place;
      readonly key: SysctlKey;
      readonly from: string | undefined;
      readonly to: string;
    }
  | { readonly kind: "add-address" | "delete-address"; readonly place: Place; readonly address: AddressState }
  | { readonly kind: "add-neighbour" | "delete-neighbour"; readonly place: Place; readonly neighbour: NeighbourState }
  /** With `beside` there are others for its destination with its metric, in whose row it is the first or the last. */
  | {
      readonly kind: "add-route" | "delete-route";
      readonly place: Place;
      readonly route: RouteState;
      readonly beside?: RouteRank | undefined;
    }
  | { readonly kind: "add-rule" | "delete-rule"; readonly place: Place; readonly rule: RuleState }
  | { readonly kind: "add-table" | "delete-table"; readonly place: Place; readonly table: NftTable };

const OPPOSITE = {
  "add-veth": "delete-veth",
  "add-device": "delete-device",
  "add-address": "delete-address",
  "delete-address": "add-address",
  "add-neighbour": "delete-neighbour",
  "delete-neighbour": "add-neighbour",
  "add-route": "delete-route",
  "delete-route": "add-route",
  "add-rule": "delete-rule",
  "delete-rule": "add-rule",
  "add-table": "delete-table",
  "delete-table": "add-table",
} as const;

/**
 * What takes the operation back; undefined when that is done by taking back another one (a new link's settings go with the link), for
 * the deletion of a veth or a device, as what led over it does not come back with it, and for a question.
 */
export function inverseOf(operation: Operation): Operation | undefined {
  switch (operation.kind) {
    case "set-link":
      return { ...operation, from: operation.to, to: operation.from };
    case "set-bond":
      return { ...operation, from: operation.to, to: operation.from };
    case "set-sysctl":
      return operation.from === undefined ? undefined : { ...operation, from: operation.to, to: operation.from };
    case "delete-veth":
    case "delete-device":
    case "try-member":
      return undefined;
    default:
      return { ...operation, kind: OPPOSITE[operation.kind] } as Operation;
  }
}

/** Whether the pod is not needed for it; a pair is made and deleted from the node. */
export function isOnNode(operation: Operation): boolean {
  return !("place" in operation) || operation.place === "host";
}

/** What takes back all of them: the inverses, the last one first. */
export function inverseOfAll(operations: readonly Operation[]): Operation[] {
  return operations
    .map(inverseOf)
    .filter((operation) => operation !== undefined)
    .reverse();
}
