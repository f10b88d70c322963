/**
 * A change of a namespace, and its inverse. A plan is applied as a list of operations, and undone as the list of
 * inverses in reverse order.
 */
import type { Mac } from "../net/mac.ts";
import type { BondSettings } from "./bond.ts";
import type { NftTable } from "./nft-table.ts";
import type { AddressState, LinkSettings, NeighbourState, Place, RouteState, RuleState, SysctlKey } from "./state.ts";

/** A veth pair with one end in each namespace, both down. */
export type Veth = Readonly<Record<Place, { readonly name: string; readonly mac: Mac }>>;

/** A device on top of other links. A new one is down, and a new bond has no members. */
export type Device =
  /** 802.1Q on the link `parent`. */
  | { readonly kind: "vlan"; readonly name: string; readonly parent: string; readonly id: number }
  /** Members inherit the MTU of their bond. */
  | {
      readonly kind: "bond";
      readonly name: string;
      readonly mtu?: number | undefined;
      readonly settings: BondSettings;
    };

/**
 * Position among several routes with the same destination and metric, which some plugins leave behind; the kernel
 * uses the first one. A route from the middle is restored as the last.
 */
export type RouteRank = "first" | "last";

export type Operation =
  | { readonly kind: "add-veth" | "delete-veth"; readonly veth: Veth }
  | { readonly kind: "add-device" | "delete-device"; readonly place: Place; readonly device: Device }
  /** `from` undoes it: the bond's previous values of `to`, and of settings that it loses with the change. */
  | {
      readonly kind: "set-bond";
      readonly place: Place;
      readonly link: string;
      readonly from: BondSettings;
      readonly to: BondSettings;
    }
  /** Tests whether the bond would accept a link that is up, before the link is set down. Changes nothing. */
  | { readonly kind: "try-member"; readonly place: Place; readonly link: string; readonly bond: string }
  /** `from` has the keys of `to`. */
  | {
      readonly kind: "set-link";
      readonly place: Place;
      readonly link: string;
      readonly from: LinkSettings;
      readonly to: LinkSettings;
    }
  | {
      readonly kind: "add-alt-name" | "delete-alt-name";
      readonly place: Place;
      readonly link: string;
      readonly altName: string;
    }
  /** `from` is undefined if the link did not exist before. */
  | {
      readonly kind: "set-sysctl";
      readonly place: Place;
      readonly key: SysctlKey;
      readonly from: string | undefined;
      readonly to: string;
    }
  | { readonly kind: "add-address" | "delete-address"; readonly place: Place; readonly address: AddressState }
  | { readonly kind: "add-neighbour" | "delete-neighbour"; readonly place: Place; readonly neighbour: NeighbourState }
  /** `beside` is set if there are other routes with the same destination and metric: the position among them. */
  | {
      readonly kind: "add-route" | "delete-route";
      readonly place: Place;
      readonly route: RouteState;
      readonly beside?: RouteRank | undefined;
    }
  | { readonly kind: "add-rule" | "delete-rule"; readonly place: Place; readonly rule: RuleState }
  /** `before`: the table of that name that it replaces, at once. */
  | {
      readonly kind: "add-table" | "delete-table";
      readonly place: Place;
      readonly table: NftTable;
      readonly before?: NftTable | undefined;
    };

const OPPOSITE = {
  "add-veth": "delete-veth",
  "add-device": "delete-device",
  "add-alt-name": "delete-alt-name",
  "delete-alt-name": "add-alt-name",
  "add-address": "delete-address",
  "delete-address": "add-address",
  "add-neighbour": "delete-neighbour",
  "delete-neighbour": "add-neighbour",
  "add-route": "delete-route",
  "delete-route": "add-route",
  "add-rule": "delete-rule",
  "delete-rule": "add-rule",
  "delete-table": "add-table",
} as const;

/**
 * Returns the operation that undoes this one. Undefined if the inverse of another operation includes it (a new link's
 * settings are deleted with the link), for the deletion of a veth or a device, which does not bring back the routes
 * over it, and for a test.
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
    case "add-table":
      if (operation.before !== undefined) return { ...operation, table: operation.before, before: operation.table };
      return { ...operation, kind: "delete-table" };
    default:
      return { ...operation, kind: OPPOSITE[operation.kind] } as Operation;
  }
}

/** Returns whether the operation needs only the node's namespace; veth pairs are created and deleted from there. */
export function isOnNode(operation: Operation): boolean {
  return !("place" in operation) || operation.place === "host";
}

/** Returns the operations that undo all of these, the inverse of the last one first. */
export function inverseOfAll(operations: readonly Operation[]): Operation[] {
  return operations
    .map(inverseOf)
    .filter((operation) => operation !== undefined)
    .reverse();
}
