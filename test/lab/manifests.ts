/**
 * An administrator's input for the lab: settings, pools and pods for an agent, entries of CNI networks, and a
 * runtime's statements about a pod.
 */

export const ALL_VERSIONS = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/** Only IPv4, no cooldown worth waiting for unless a test says so. */
export const CONF = vendorConf({ enableIPv6: false, allocationCooldown: "1s" });

export function vendorConf(settings: Record<string, unknown>): string {
  const lines = Object.entries(settings).map(([key, value]) => `    ${key}: ${JSON.stringify(value)}\n`);
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vendor-conf}\ndata:\n  conf.yml: |\n${lines.join("")}`;
}

/** A manifest of one of Berth's kinds, one line. */
export function manifest(kind: string, name: string, spec: object): string {
  return `${JSON.stringify({ apiVersion: "ipam.vendor.io/v1", kind, metadata: { name }, spec })}\n`;
}

export function ipPool(name: string, subnet: string, spec: Record<string, unknown> = {}): string {
  return manifest("IPPool", name, { subnet, ...spec });
}

/** Annotations without a domain are Berth's; values that are no text are encoded. */
export function podManifest(namespace: string, name: string, annotations: Record<string, unknown>): string {
  const texts = Object.entries(annotations).map(([key, value]) => [
    key.includes("/") ? key : `ipam.vendor.io/${key}`,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  const metadata = { namespace, name, annotations: Object.fromEntries(texts) };
  return `${JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata })}\n`;
}

/** CNI_ARGS as kubelet's runtime sets them; absent ones are left out. */
export function podArgs(namespace?: string, name?: string, uid?: string): string {
  const words = { K8S_POD_NAMESPACE: namespace, K8S_POD_NAME: name, K8S_POD_UID: uid };
  const given = Object.entries(words).filter(([, value]) => value !== undefined);
  return ["IgnoreUnknown=1", ...given.map(([key, value]) => `${key}=${value}`)].join(";");
}

/** The main plugin's entry of a network. */
export function macvlan(master: string, ipam: object = { type: "berth" }) {
  return { type: "macvlan", master, mode: "bridge", ipam };
}
