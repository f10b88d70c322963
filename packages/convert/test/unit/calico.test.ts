/**
 * Fields of Calico's pools that the definitions of the cluster test do not have yet, and the form in which calicoctl
 * writes objects.
 */
import { expect, it } from "vitest";
import { convertFiles, yaml } from "../convert-files.ts";

const poolOf = (spec: object, apiVersion = "projectcalico.org/v3") => ({
  ...{ apiVersion, kind: "IPPool", metadata: { name: "p" }, spec: { cidr: "10.7.0.0/16", ...spec } },
});

function convertObjects(...items: readonly object[]) {
  const list = { apiVersion: "v1", kind: "List", items };
  const { manifests, findings } = convertFiles("calico", yaml(list));
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
  for (const pool of [poolOf(spec), poolOf(spec, "crd.projectcalico.org/v1")])
    expect(convertObjects(pool)).toEqual({ spec: converted, lost });
});

const network = (ipam: object) => ({
  ...{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition", metadata: { name: "n" } },
  spec: { config: JSON.stringify({ cniVersion: "1.0.0", name: "n", type: "macvlan", master: "eth1", ipam }) },
});
const CONFIG = { apiVersion: "crd.projectcalico.org/v1", kind: "IPAMConfig", metadata: { name: "default" } };

it.each<[object, lost?: string]>([
  [network({ type: "calico-ipam", assign_ipv4: "false" }), "spec.config.ipam.assign_ipv4"],
  [network({ type: "calico-ipam", assign_ipv6: "false" })],
  [network({ type: "calico-ipam", ipv4_pools: ["none"] }), "spec.config.ipam.ipv4_pools[0]"],
  [{ ...CONFIG, spec: { kubeVirtVMAddressPersistence: "Disabled" } }, "spec.kubeVirtVMAddressPersistence"],
])("%j loses %s", (object, ...lost) => expect(convertObjects(poolOf({}), object).lost).toEqual(lost));
