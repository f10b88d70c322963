/** The rules within one IPAllocation, each in CEL for the API server and as a function for the decoder. */
import type { CelRule } from "../../lib/cel.ts";
import type { IpAllocationSpec } from "../ip-allocation.ts";

interface AllocationRule {
  /** A key of the spec. */
  readonly field: string;
  readonly wanted: string;
  /** In CEL; `self` is the spec. */
  readonly rule: string;
  readonly holds: (spec: IpAllocationSpec) => boolean;
}

const IS_FOUR = "!self.address.contains(':')";
const HELD = "has(self.holders) && self.holders.size() > 0";
const TWO_PODS = "has(self.workload) && self.holders[0].podUID != self.holders[1].podUID";

export const ALLOCATION_RULES: readonly AllocationRule[] = [
  {
    field: "prefixLength",
    wanted: "a length from 0 to 32 with an IPv4 address",
    rule: `!(${IS_FOUR}) || self.prefixLength <= 32`,
    holds: ({ ip, prefixLength }) => ip.family === 6 || prefixLength <= 32,
  },
  {
    field: "holders",
    wanted: "at least one with the state Bound, none with any other state",
    rule: `(self.state == 'Bound') == (${HELD})`,
    holds: ({ state, holders }) => (state === "Bound") === holders.length > 0,
  },
  {
    field: "holders",
    wanted: "one, or two different pods of one workload",
    rule: `!(${HELD}) || self.holders.size() < 2 || (${TWO_PODS})`,
    holds: ({ holders: [first, second], workload }) =>
      second === undefined || (workload !== undefined && first?.podUid !== second.podUid),
  },
  {
    field: "node",
    wanted: "the node of a holder",
    rule: `!(${HELD}) || self.holders.exists(holder, holder.node == self.node)`,
    holds: ({ node, holders }) => holders.length === 0 || holders.some((holder) => holder.node === node),
  },
  {
    field: "workload",
    wanted: "a workload with the state Kept",
    rule: "self.state != 'Kept' || has(self.workload)",
    holds: ({ state, workload }) => state !== "Kept" || workload !== undefined,
  },
  {
    field: "quarantine",
    wanted: "a reason with the state Quarantined, none with Cooling and Kept",
    rule: "self.state == 'Bound' || (self.state == 'Quarantined') == has(self.quarantine)",
    holds: ({ state, quarantine }) => state === "Bound" || (state === "Quarantined") === (quarantine !== undefined),
  },
];

/**
 * The workload's namespace is unchanged. If an older agent did not write it, the old holder's namespace is compared; without either, the rule fails.
 * CEL reserves the word `namespace`, so the field is escaped as `__namespace__`.
 */
const SAME_NAMESPACE =
  "has(self.workload.__namespace__) && (has(oldSelf.workload.__namespace__) ? self.workload.__namespace__ == oldSelf.workload.__namespace__ : " +
  "has(oldSelf.holders) && oldSelf.holders.size() > 0 && self.workload.__namespace__ == oldSelf.holders[0].__namespace__)";

/** Which node may take over an address, as far as the API server can check it (node-rights and retention in docs/allocation.md). */
const TAKE_OVER: CelRule = {
  rule:
    "self.node == oldSelf.node || oldSelf.state in ['Cooling', 'Quarantined'] || (has(self.workload) && has(oldSelf.workload) && " +
    `${SAME_NAMESPACE} && ` +
    "self.workload.uid == oldSelf.workload.uid && self.workload.member == oldSelf.workload.member)",
  message:
    "the same node; another node may take over only an address that is Cooling or Quarantined, or of the same member of a workload",
  fieldPath: ".node",
};

/** Rules of the spec. */
export const SPEC_RULES: readonly CelRule[] = [
  ...ALLOCATION_RULES.map(({ field, wanted, rule }) => ({ rule, message: wanted, fieldPath: `.${field}` })),
  TAKE_OVER,
];

export const NAME_FORM = "the address, followed by a dot and the address space if there is one";

const NAME = "self.metadata.name";
const IS_FOUR_NAME = `${NAME} == self.spec.address + ending`;
const IS_SIX_NAME =
  `${NAME}.matches('^[0-9a-f]{4}(-[0-9a-f]{4}){7}([.]|$)') && ${NAME}.substring(39) == ending && ` +
  // Kubernetes 1.31 takes the cost of comparing two addresses with == for unlimited.
  `cidr(${NAME}.substring(0, 39).replace('-', ':') + '/128').containsIP(self.spec.address)`;
const ENDING = "(self.spec.addressSpace == '' ? '' : '.' + self.spec.addressSpace)";

/** Rule of the whole object: the name is the address, else creating the object would not lock it. Mirrors allocationName. */
export const NAME_RULE: CelRule = {
  rule: `!isIP(self.spec.address) || (self.spec.address.contains(':') ? ${IS_SIX_NAME} : ${IS_FOUR_NAME})`.replaceAll(
    "ending",
    ENDING,
  ),
  message: NAME_FORM,
  fieldPath: ".metadata.name",
};
