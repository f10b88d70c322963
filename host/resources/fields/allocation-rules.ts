/**
 * What one IPAllocation can tell about itself: each rule as the API server checks it and as the decoder does.
 */
import type { CelRule } from "../../lib/cel.ts";
import type { IpAllocationSpec } from "../ip-allocation.ts";

export interface AllocationRule {
  /** In the spec. */
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
    wanted: "at least one of a Bound address, none of any other",
    rule: `(self.state == 'Bound') == (${HELD})`,
    holds: ({ state, holders }) => (state === "Bound") === holders.length > 0,
  },
  {
    field: "holders",
    wanted: "one, or two pods of one workload",
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
    wanted: "what keeps the address of the state Kept",
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
 * That of the workload; where an older agent did not write it that of its pods, and without either it is nobody's. `namespace` is a word of CEL, which a
 * field of that name has to be told from.
 */
const SAME_NAMESPACE =
  "has(self.workload.__namespace__) && (has(oldSelf.workload.__namespace__) ? self.workload.__namespace__ == oldSelf.workload.__namespace__ : " +
  "has(oldSelf.holders) && oldSelf.holders.size() > 0 && self.workload.__namespace__ == oldSelf.holders[0].__namespace__)";

/** As far as the API server can judge who takes over what (allocation rules 6 and 8). */
const TAKE_OVER: CelRule = {
  rule:
    "self.node == oldSelf.node || oldSelf.state in ['Cooling', 'Quarantined'] || (has(self.workload) && has(oldSelf.workload) && " +
    `${SAME_NAMESPACE} && ` +
    "self.workload.uid == oldSelf.workload.uid && self.workload.member == oldSelf.workload.member)",
  message:
    "the node that has it: another one takes over only what cools, what is in quarantine, and what is of the same member of a workload",
  fieldPath: ".node",
};

/** Of the spec. */
export const SPEC_RULES: readonly CelRule[] = [
  ...ALLOCATION_RULES.map(({ field, wanted, rule }) => ({ rule, message: wanted, fieldPath: `.${field}` })),
  TAKE_OVER,
];

export const NAME_FORM = "the address, and after a dot its space if it has one";

const NAME = "self.metadata.name";
const IS_FOUR_NAME = `${NAME} == self.spec.address + ending`;
const IS_SIX_NAME =
  `${NAME}.matches('^[0-9a-f]{4}(-[0-9a-f]{4}){7}([.]|$)') && ${NAME}.substring(39) == ending && ` +
  `ip(${NAME}.substring(0, 39).replace('-', ':')) == ip(self.spec.address)`;
const ENDING = "(self.spec.addressSpace == '' ? '' : '.' + self.spec.addressSpace)";

/** Of the whole object: one whose name is not its address would be no lock. Mirrors allocationName. */
export const NAME_RULE: CelRule = {
  rule: `!isIP(self.spec.address) || (self.spec.address.contains(':') ? ${IS_SIX_NAME} : ${IS_FOUR_NAME})`.replaceAll(
    "ending",
    ENDING,
  ),
  message: NAME_FORM,
  fieldPath: ".metadata.name",
};
