/**
 * Decodes the annotation `k8s.v1.cni.cncf.io/networks`, the additional networks of a pod (Kubernetes Network Custom
 * Resource Definition De-facto Standard, section 4.1). Keys that Berth does not read are not checked.
 */
import * as z from "zod";
import { describeValue } from "../lib/describe.ts";
import { ConfigError, decodeConfig, decodeJsonConfig } from "./config-error.ts";
import { namespaceName, objectName } from "./fields/names.ts";
import { ifName } from "./fields/network.ts";

const networkSelection = z
  .object({
    namespace: namespaceName.optional(),
    name: objectName,
    interface: ifName.optional(),
    ips: z.unknown().optional(),
    "cni-args": z.unknown().optional(),
    "ipam-claim-reference": objectName.optional(),
  })
  .transform(({ ips, "cni-args": args, "ipam-claim-reference": claim, ...network }) => {
    // The plugin decodes the requested addresses; here it only matters whether there are any.
    const hasIps = Array.isArray(ips) && ips.length > 0;
    const isAsking = hasIps || (typeof args === "object" && args !== null && "ips" in args);
    return { ...network, ...(isAsking ? { isAsking } : {}), ...(claim === undefined ? {} : { claim }) };
  });

export type NetworkSelection = Readonly<z.output<typeof networkSelection>>;

const networkSelections = z.array(networkSelection);

/** `[namespace/]name[@interface]`. */
const SHORT_FORM = /^(?:(?<namespace>[^/@]+)\/)?(?<name>[^/@]+)(?:@(?<interface>[^/@]+))?$/;

function splitShortForm(item: string, source: string): object {
  const groups = SHORT_FORM.exec(item.trim())?.groups;
  if (groups !== undefined) return groups;
  throw new ConfigError(source, [{ path: "", got: describeValue(item), wanted: "[namespace/]name[@interface]" }]);
}

/**
 * Decodes the comma-separated or JSON form; returns undefined for a blank text. Throws ConfigError, also for more
 * than `most` networks.
 */
export function decodeNetworkSelections(text: string, source: string, most = Infinity): NetworkSelection[] | undefined {
  if (text.trim() === "") return undefined;
  const selections = /[[{"]/.test(text)
    ? decodeJsonConfig(networkSelections, text, source)
    : decodeConfig(
        networkSelections,
        text.split(",").map((item) => splitShortForm(item, source)),
        source,
      );
  if (selections.length <= most) return selections;
  throw new ConfigError(source, [{ path: "", got: `${selections.length} networks`, wanted: `at most ${most}` }]);
}
