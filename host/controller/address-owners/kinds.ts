/**
 * The kinds of objects that keep addresses: where each is, and what of it tells that it keeps a member's addresses no longer.
 */
import type { KubeObject } from "../../kubernetes/kube-api.ts";
import type { Workload } from "../../resources/ip-allocation.ts";
import { decodeStatefulSet, hasMember } from "../../resources/workloads/stateful-set.ts";
import { decodeMachine } from "../../resources/workloads/virtual-machine.ts";
import { requireUid } from "./uid.ts";

/** What a watch keeps of an object. */
export interface AddressOwnerEvents {
  readonly uid: string;
  /** Which of its members it keeps; another text is another answer. */
  readonly keeps: string;
}

export interface AddressOwnerKind {
  readonly kind: Workload["kind"];
  readonly group: `/apis/${string}`;
  readonly plural: string;
  /** Of another project: the API server may not know it. */
  readonly isOptional: boolean;
  /** Throws ConfigError for what cannot be understood. */
  readonly read: (object: KubeObject, source: string) => AddressOwnerEvents;
  /** Whether the live object, whose UID is the workload's, keeps what it has for the member. Throws ConfigError. */
  readonly keeps: (object: KubeObject, workload: Workload, source: string) => boolean;
}

const byUid = (object: KubeObject, source: string): AddressOwnerEvents => ({
  uid: requireUid(object, source),
  keeps: "",
});

export const ADDRESS_OWNER_KINDS: readonly AddressOwnerKind[] = [
  {
    ...{ kind: "StatefulSet", group: "/apis/apps/v1", plural: "statefulsets", isOptional: false },
    read: (object, source) => {
      const { uid, start, replicas } = decodeStatefulSet(object, source);
      return { uid, keeps: `${start}+${replicas}` };
    },
    keeps: (object, { name, member }, source) => hasMember(name, decodeStatefulSet(object, source), member),
  },
  {
    // One that is stopped keeps what it has.
    ...{ kind: "VirtualMachine", group: "/apis/kubevirt.io/v1", plural: "virtualmachines", isOptional: true },
    ...{ read: byUid, keeps: () => true },
  },
  {
    // Made without a VirtualMachine: it runs once.
    ...{ kind: "VirtualMachineInstance", group: "/apis/kubevirt.io/v1", plural: "virtualmachineinstances" },
    isOptional: true,
    read: (object, source) => {
      const { uid, isFinished } = decodeMachine(object, source);
      return { uid, keeps: `${!isFinished}` };
    },
    keeps: (object, _workload, source) => !decodeMachine(object, source).isFinished,
  },
  {
    ...{ kind: "IPAMClaim", group: "/apis/k8s.cni.cncf.io/v1alpha1", plural: "ipamclaims", isOptional: true },
    ...{ read: byUid, keeps: () => true },
  },
];
