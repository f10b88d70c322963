/**
 * The fields of KubeVirt's kinds (kubevirt.io/v1) that Berth reads. A VirtualMachine exists while the machine is
 * stopped. Each run of it is a VirtualMachineInstance of the same name with a virt-launcher pod, or two while it
 * migrates.
 */
import * as z from "zod";
import { decodeConfig } from "../../config/config-error.ts";
import { metadata } from "../fields/metadata.ts";

const KUBEVIRT_GROUP = "kubevirt.io";

const schema = z.object({ metadata, status: z.object({ phase: z.string().nullish() }).nullish() });

/**
 * Decodes a VirtualMachine or a VirtualMachineInstance. Throws ConfigError. In an instance, `machine` is the
 * VirtualMachine that runs it, if any; an instance that `isFinished` will not run again.
 */
export function decodeMachine(value: unknown, source: string) {
  const { metadata, status } = decodeConfig(schema, value, source);
  const machine = metadata.ownerReferences.find(
    ({ controller, kind, apiVersion }) => controller && kind === "VirtualMachine" && isKubevirt(apiVersion),
  );
  const phase = status?.phase;
  return { uid: metadata.uid ?? "", machine, isFinished: phase === "Succeeded" || phase === "Failed" };
}

/** Returns whether the kind is KubeVirt's, in any version: the fields read here are the same in all. */
export function isKubevirt(apiVersion: string): boolean {
  return apiVersion.startsWith(`${KUBEVIRT_GROUP}/`);
}
