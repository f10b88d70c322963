/**
 * KubeVirt's machines, as far as Berth reads them (kubevirt.io/v1). A VirtualMachine lives while the machine is stopped; each run of it is a
 * VirtualMachineInstance of the same name, whose pod is a virt-launcher; while it migrates it has two.
 */
import { z } from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { metadata, type OwnerReference } from "../fields/metadata.ts";

export const KUBEVIRT_GROUP = "kubevirt.io";

export interface MachineObject {
  readonly uid: string;
  /** Of a VirtualMachineInstance: the VirtualMachine that runs it; undefined when it was made without one. */
  readonly machine: OwnerReference | undefined;
  /** Of a VirtualMachineInstance: it ran and will not run again. */
  readonly isFinished: boolean;
}

const schema = z.object({ metadata, status: z.object({ phase: z.string().nullish() }).nullish() });

/** Of either kind. Throws ConfigError. */
export function decodeMachine(value: unknown, source: string): MachineObject {
  const { metadata, status } = decodeConfig(schema, value, source);
  const machine = metadata.ownerReferences.find(
    ({ controller, kind, apiVersion }) => controller && kind === "VirtualMachine" && isKubevirt(apiVersion),
  );
  const phase = status?.phase;
  return { uid: metadata.uid ?? "", machine, isFinished: phase === "Succeeded" || phase === "Failed" };
}

/** Of any version: what is read here is the same in all. */
export function isKubevirt(apiVersion: string): boolean {
  return apiVersion.startsWith(`${KUBEVIRT_GROUP}/`);
}
