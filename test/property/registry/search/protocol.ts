/**
 * An address protocol as the world sees it: agents and a controller as functions from knowledge to the next action.
 * There is one address. The world has the API server, the pods, the NICs, the clocks and the faults.
 */

/** A pod of the cast. Two of one name have one member, and are never there at the same time. */
export interface PodName {
  readonly uid: string;
  readonly name: string;
  readonly isMember: boolean;
}

/** The address's object in the API server. */
export interface Stored<Spec> {
  readonly uid: number;
  readonly version: number;
  readonly spec: Spec;
}

type Precondition = Pick<Stored<unknown>, "uid" | "version">;

/** A write to the API server. */
export type Call<Spec> =
  | { readonly kind: "create"; readonly spec: Spec }
  | { readonly kind: "replace"; readonly spec: Spec; readonly before: Precondition }
  | { readonly kind: "delete"; readonly before: Precondition };

export type Answer<Spec> =
  | { readonly kind: "written"; readonly object: Stored<Spec> | undefined }
  /** The name is taken, or the precondition does not hold. */
  | { readonly kind: "refused" }
  /** It may have been carried out, or be so later. `isRetried`: the client has sent it once more. */
  | { readonly kind: "unanswered"; readonly isRetried: boolean };

/**
 * The place of a NIC's address. `renamed`: on a link of another name. `moved`: its netns is not at its path any more,
 * where there is another one.
 */
export type NicState = "comingUp" | "up" | "renamed" | "moved" | "without";

export interface Nic {
  readonly container: string;
  readonly uid: string;
  readonly state: NicState;
}

/** `there`: it is ready. `off`: an administrator has confirmed that by the out-of-service taint. */
export type NodeState = "there" | "lost" | "off" | "absent";

/** Everything that can be read, as it is now. */
export interface Surroundings<Spec> {
  readonly object: Stored<Spec> | undefined;
  /** Whether the Service says that it has the address. */
  readonly isClaimed: boolean;
  /** Returns the UID of the pod that has the name in the API server. */
  readonly uidOf: (name: string) => string | undefined;
  readonly nodes: ReadonlyMap<string, NodeState>;
  /** Identity of the machine that each of them reports. */
  readonly machines: ReadonlyMap<string, string>;
  /** Returns a number that was never returned before. */
  readonly next: () => number;
}

export interface Place<Spec> extends Surroundings<Spec> {
  /** The node's name. */
  readonly node: string;
  /** Identity of the machine, whatever its node is called. */
  readonly machine: string;
  /** The machine's NICs. */
  readonly nics: readonly Nic[];
  /** Pods of this node that were answered with another address. */
  readonly others: readonly PodName[];
  /** Whether a NIC has its address only a while after the ADD. */
  readonly isSlow: boolean;
  /** Asks the segment; returns whether no machine answers for the address. */
  readonly isSilent: () => boolean;
}

export interface Agent<Row, Memory> {
  /** The journal's row of the address, which survives a kill. */
  readonly row: Row | undefined;
  /** The memory, which a kill ends. */
  readonly memory: Memory;
}

/**
 * Times that a step waits for. While the world believes a limit, the step does not come too early. Other times are
 * not believed at all: a step that they delay may come at once, and each observation may be the second one.
 */
export type Limit = "lateWrite" | "cooldown" | "rest" | "comingUp" | "patience";

/** An agent's turn: at most one write is under way. */
export interface Turn<Row, Memory, Spec> extends Agent<Row, Memory> {
  readonly label: string;
  /** The write that it sends now. */
  readonly call?: Call<Spec> | undefined;
  /** An ADD has ended. */
  readonly answer?: { readonly container: string; readonly isBound: boolean } | undefined;
  /** Containers whose NICs have lost the address. */
  readonly fenced: readonly string[];
  readonly waitsFor?: Limit | undefined;
}

export interface ControllerTurn<Spec> {
  readonly label: string;
  readonly call?: Call<Spec> | undefined;
  /** The nodes whose agents are told to look at the address. */
  readonly told: readonly string[];
  readonly waitsFor: readonly Limit[];
  /** The node whose agent acts before the controller loses its patience. */
  readonly node: string;
}

/** The object as the invariants see it. */
export interface View {
  readonly state: "Bound" | "Cooling" | "Kept" | "Quarantined";
  readonly holders: readonly string[];
  /** Whether it is the member's, whose next pod gets it. */
  readonly isRetained: boolean;
  /** Whether it is the Service's. */
  readonly isClaimed: boolean;
}

export interface Protocol<Row, Memory, Spec> {
  /** Returns the memory of an agent that has just started on the node. */
  readonly start: (row: Row | undefined, node: string) => Memory;
  readonly add: (
    agent: Agent<Row, Memory>,
    ask: { readonly pod: PodName; readonly container: string },
    place: Place<Spec>,
  ) => Promise<Turn<Row, Memory, Spec> | undefined>;
  readonly release: (
    agent: Agent<Row, Memory>,
    container: string,
    place: Place<Spec>,
  ) => Promise<Turn<Row, Memory, Spec>>;
  /** Returns the turns that it may take by itself. */
  readonly own: (agent: Agent<Row, Memory>, place: Place<Spec>) => Promise<readonly Turn<Row, Memory, Spec>[]>;
  readonly answered: (
    agent: Agent<Row, Memory>,
    answer: Answer<Spec>,
    place: Place<Spec>,
  ) => Promise<Turn<Row, Memory, Spec>>;
  /** A comparison of all objects is due, or the controller has asked for one. */
  readonly told: (memory: Memory) => Memory;
  /** Returns the controller's possible turns; the next look shows the result of its call. */
  readonly control: (place: Surroundings<Spec>) => readonly ControllerTurn<Spec>[];
  readonly view: (spec: Spec) => View;
  /** The record that a controller has made for the member before its first pod. */
  readonly kept: (member: PodName) => Spec;
  /** Returns the UID of the pod to which the row binds the address; undefined if it binds it to none. */
  readonly holderOf: (row: Row) => string | undefined;
  /** Returns texts that are equal if the values are, apart from the numbers, which are written as `#1`. */
  readonly key: {
    readonly row: (row: Row) => string;
    readonly memory: (memory: Memory, row: Row | undefined) => string;
    readonly spec: (spec: Spec) => string;
  };
}
