/**
 * Cilium's settings, the ConfigMap kube-system/cilium-config, and its CiliumPodIPPools, which count with `ipam: multi-pool`.
 */
import { z } from "zod";
import type { KubeObject } from "../../../kubernetes/kube-api.ts";
import { decode, formatMismatches } from "../../../lib/schema.ts";
import { FAMILIES } from "../../../net/ip.ts";
import type { CiliumPoolStatement, CiliumSettings } from "../sightings.ts";
import { faultyStatement, readStatements } from "../statement.ts";
import { nameOf } from "./name.ts";

const settingsSchema = z.object({ data: z.record(z.string(), z.string()).nullish() });

export function readCiliumSettings(object: KubeObject): CiliumSettings {
  const place = "ConfigMap kube-system/cilium-config";
  const decoded = decode(settingsSchema, object);
  if (!decoded.ok) {
    const faults = [`${place}: ${formatMismatches(decoded.mismatches)}`];
    return { ipam: "", families: [], pools: [], faults };
  }
  const settings = decoded.value.data ?? {};
  const families = FAMILIES.filter((family) => settings[`enable-ipv${family}`] !== "false");
  const pools = families.flatMap((family) => {
    const key = `cluster-pool-ipv${family}-cidr`;
    return readStatements(`${place}, ${key}`, [settings[key] ?? ""]);
  });
  return { ipam: settings.ipam ?? "", families, pools, faults: [] };
}

const cidrs = z.object({ cidrs: z.array(z.string()).nullish() }).nullish();

const poolSchema = z.object({ spec: z.object({ ipv4: cidrs, ipv6: cidrs }) });

export function readCiliumPool(object: KubeObject): readonly CiliumPoolStatement[] {
  const place = `CiliumPodIPPool ${nameOf(object)}`;
  const decoded = decode(poolSchema, object);
  if (!decoded.ok) return [{ ...faultyStatement(place, formatMismatches(decoded.mismatches)), family: 4 }];
  const { ipv4, ipv6 } = decoded.value.spec;
  const listed = { 4: ipv4?.cidrs ?? [], 6: ipv6?.cidrs ?? [] };
  return FAMILIES.flatMap((family) => readStatements(place, listed[family]).map((each) => ({ ...each, family })));
}
