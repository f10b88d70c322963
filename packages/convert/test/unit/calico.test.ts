/**
 * Fields of Calico's pools that the definitions of the cluster test do not have yet, and the form in which calicoctl
 * writes objects.
 */
import { expect, it } from "vitest";
import { convert } from "../../convert.ts";
import { readInput } from "../../input.ts";

function convertPool(spec: object, apiVersion = "projectcalico.org/v3") {
  const pool = { apiVersion, kind: "IPPool", metadata: { name: "p" }, spec: { cidr: "10.7.0.0/16", ...spec } };
  const files = [{ path: "in.json", text: JSON.stringify({ apiVersion: "v1", kind: "List", items: [pool] }) }];
  const options = { peer: "calico", suffix: "-berth", target: { pools: [], allocated: new Map() } } as const;
  const { manifests, findings } = convert((builder) => readInput(files, builder.findings), options);
  return { spec: manifests[0]?.spec, lost: findings.filter(({ level }) => level === "lost").map(({ field }) => field) };
}

const SUBNET = { subnet: "10.7.0.0/16" };
const DEFAULT = { ...SUBNET, default: true };
const IN_SHOP = { matchExpressions: [{ key: "team", operator: "In", values: ["shop"] }] };

it.each<[spec: object, converted: object | undefined, lost?: readonly string[]]>([
  [{}, DEFAULT],
  [{ assignmentMode: "Manual" }, SUBNET],
  [{ namespaceSelector: "team == 'shop'" }, { ...SUBNET, namespaceAffinity: IN_SHOP, default: true }],
  [{ namespaceSelector: "a || b" }, { ...SUBNET, default: true, disable: true }, ["spec.namespaceSelector"]],
  [{ disableBGPExport: false, natOutgoing: false, ipipMode: "Never" }, DEFAULT],
  [{ disableBGPExport: true }, { ...SUBNET, default: true }, ["spec.disableBGPExport"]],
  [{ ipipMode: "Always" }, { ...SUBNET, default: true, disable: true }, ["spec.ipipMode"]],
  [{ allowedUses: ["LoadBalancer"] }, undefined],
])("%j", (spec, converted, lost = []) => {
  expect(convertPool(spec)).toEqual({ spec: converted, lost });
  expect(convertPool(spec, "crd.projectcalico.org/v1")).toEqual({ spec: converted, lost });
});
