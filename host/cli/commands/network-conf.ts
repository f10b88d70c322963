/**
 * Makes the network configuration that `berthctl network` prints. The agent's own decoders validate it, so it refuses
 * the same as the agent.
 */

import { stringify } from "yaml";
import { pluginKeys } from "../../cni/net-conf.ts";
import { SUPPORTED_VERSIONS } from "../../cni/version.ts";
import { resolveCoordinatorConf } from "../../config/coordinator-settings.ts";
import { isDnsLabel, isDnsSubdomain } from "../../config/fields/names.ts";
import { decodeAttachedNetwork, decodeNetworkList, findCoordinatorSettings } from "../../config/network-definition.ts";
import { checked, FlagError, type NetworkFlags, pluginsOfFlags, shown } from "../../config/network-flags.ts";
import { conflictTiming, requireShortDetection } from "../../coordinator/probe.ts";
import { decodeDeviceSpec } from "../../ifacer/device-spec.ts";
import { documentation } from "../../lib/documentation.ts";
import { ADDRESS_GATE } from "../../resources/pod.ts";

/** The flags of fields that are judged by more than their schemas. */
const FLAGS = { "bond.options": "--bond-options", detectOptions: "--detectOptions" };

/** Decodes the text as the agent does, with the same errors. */
function verify(name: string, text: string, isList: boolean): void {
  const decode = () => (isList ? decodeNetworkList(text, name) : decodeAttachedNetwork(text, name, name));
  const { plugins } = checked({}, decode);
  const settings = findCoordinatorSettings(plugins);
  const { detectGateway, detectOptions } = resolveCoordinatorConf(...(settings ? [settings] : []));
  checked(FLAGS, () => requireShortDetection(conflictTiming(detectOptions)));
  if (detectGateway) checked(FLAGS, () => requireShortDetection({ ...detectOptions, windowMs: undefined }));
  for (const { entry, place } of plugins)
    if (entry.type === "ifacer") checked(FLAGS, () => decodeDeviceSpec(pluginKeys({ raw: entry }), place));
}

/** Returns YAML of a NetworkAttachmentDefinition, or JSON of a conflist. Throws {@link FlagError}. */
export function formatNetwork(name: string, flags: NetworkFlags): string {
  const { cniVersion, conflist = false, namespace, resourceName } = flags;
  if (!isDnsSubdomain(name)) throw new FlagError("NAME", shown(name), 'lower-case letters, digits, "-" and "."');
  if (namespace !== undefined && !isDnsLabel(namespace))
    throw new FlagError("--namespace", shown(namespace), "the name of a namespace");
  const plugins = pluginsOfFlags(flags);
  if (!SUPPORTED_VERSIONS.some((version) => version === cniVersion))
    throw new FlagError("--cni-version", shown(cniVersion), `one of ${SUPPORTED_VERSIONS.join(", ")}`);
  const list = { cniVersion, name, plugins };
  const text = JSON.stringify(list, undefined, 2);
  verify(name, text, conflist);
  if (conflist) return text;
  const annotations = resourceName && { "k8s.v1.cni.cncf.io/resourceName": resourceName };
  const metadata = { name, ...(namespace && { namespace }), ...(annotations && { annotations }) };
  const definition = { apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition", metadata };
  const network = namespace === undefined ? name : `${namespace}/${name}`;
  return `${stringify({ ...definition, spec: { config: `${text}\n` } })}${templateOf(network)}`;
}

/** As comments: the pod template's part for the network, and the gate to wait without a node while pools are full. */
function templateOf(network: string): string {
  const template = {
    metadata: { annotations: { "k8s.v1.cni.cncf.io/networks": network } },
    spec: { schedulingGates: [{ name: ADDRESS_GATE }] },
  };
  const lines = stringify(template).trimEnd().split("\n");
  return [`In a pod template (${documentation("scheduling-gate.html")}):`, ...lines]
    .map((line) => `# ${line}`)
    .join("\n");
}
