/**
 * Decodes the annotation `k8s.v1.cni.cncf.io/networks`, the additional networks of a pod (Kubernetes Network Custom
 * Resource Definition De-facto Standard, section 4.1), as Multus reads it. Keys that Berth does not read are not
 * checked, and a wrong entry concerns its own NIC alone.
 */
import * as z from "zod";
import { describeValue } from "../lib/describe.ts";
import { membersOf, parseJsonWithRepeats } from "../lib/json.ts";
import { decode, type Mismatch } from "../lib/schema.ts";
import { ConfigError, decodeJsonConfig } from "./config-error.ts";
import { namespaceName, objectName } from "./fields/names.ts";
import { ifName } from "./fields/network.ts";

const networkSelection = z
  .object({
    namespace: namespaceName.optional(),
    name: objectName,
    interface: ifName.optional(),
    // Its name before Multus 3.2.
    interfaceRequest: ifName.optional(),
    ips: z.unknown().optional(),
    "cni-args": z.unknown().optional(),
    "ipam-claim-reference": objectName.optional(),
  })
  .transform(({ ips, "cni-args": args, "ipam-claim-reference": claim, interfaceRequest, ...network }) => {
    const nic = network.interface ?? interfaceRequest;
    // The plugin decodes the requested addresses; here it only matters whether there are any.
    const hasIps = Array.isArray(ips) && ips.length > 0;
    const isAsking = hasIps || (typeof args === "object" && args !== null && "ips" in args);
    return {
      ...network,
      ...(nic === undefined ? {} : { interface: nic }),
      ...(isAsking ? { isAsking } : {}),
      ...(claim === undefined ? {} : { claim }),
    };
  });

export type NetworkSelection = Readonly<z.output<typeof networkSelection>> & {
  /** Why the entry is wrong: its NIC is refused. Then `name` is "". */
  readonly fault?: ConfigError;
};

/** Namespace in which Multus looks for the first network, unless its configuration says otherwise. */
export const META_NAMESPACE = "kube-system";

/** Returns the NIC's name for the entry with this index in the pod's list of networks, without the first NIC. */
export function nicNameOf(selection: Pick<NetworkSelection, "interface"> | undefined, index: number): string {
  return selection?.interface ?? `net${index + 1}`;
}

/** Returns the definition's `namespace/name`; `home` is the namespace if the entry has none. */
export function definitionOf({ namespace, name }: NetworkSelection, home: string): string {
  return `${namespace ?? home}/${name}`;
}

/** Go's decoder takes keys in any case. */
const KEYS = Object.keys(networkSelection.in.shape).map((key) => ({ key, pattern: new RegExp(`^${key}$`, "iu") }));

/**
 * Returns the fields as Go's decoder has them, which leaves a value that is not set empty: of each field the last value
 * counts, `null` changes nothing, and an empty text is none.
 */
function readAsGo(entry: unknown): unknown {
  if (typeof entry !== "object" || entry === null || Array.isArray(entry)) return entry;
  const fields = new Map<string, unknown>();
  for (const [written, value] of membersOf(entry)) {
    const found = value === null ? undefined : KEYS.find(({ pattern }) => pattern.test(written));
    if (found !== undefined) fields.set(found.key, value);
  }
  return Object.fromEntries([...fields].filter(([, value]) => value !== ""));
}

function selectionOf(entry: unknown, index: number, source: string): NetworkSelection {
  const decoded = decode(networkSelection, entry);
  if (decoded.ok) return decoded.value;
  const [first, ...others] = decoded.mismatches;
  const placed = ({ path, ...rest }: Mismatch): Mismatch => ({
    path: path === "" ? `[${index}]` : `[${index}].${path}`,
    ...rest,
  });
  const fault = new ConfigError(source, [placed(first), ...others.map(placed)]);
  const { interfaceRequest, interface: asked = interfaceRequest } = Object(entry);
  const nic = ifName.safeParse(asked);
  return { name: "", fault, ...(nic.success ? { interface: nic.data } : {}) };
}

/** `[namespace/]name[@interface]`, with blanks. */
const SHORT_FORM = /^(?:(?<namespace>[^/]*)\/)?(?<name>[^/@]*)(?:@(?<interface>[^/@]*))?$/;

function splitShortForm(item: string, index: number, source: string): NetworkSelection {
  const { groups } = SHORT_FORM.exec(item) ?? {};
  if (groups !== undefined && groups.name?.trim() !== "") {
    const fields = Object.entries(groups).map(([key, text]) => [key, text?.trim() || undefined] as const);
    return selectionOf(Object.fromEntries(fields), index, source);
  }
  const mismatch = { path: `[${index}]`, got: describeValue(item.trim()), wanted: "[namespace/]name[@interface]" };
  return { name: "", fault: new ConfigError(source, [mismatch]) };
}

const entries = z.array(z.unknown());

/**
 * Decodes the comma-separated or JSON form; returns undefined for a blank text. Throws ConfigError for a text that has
 * no entries, and for more than `most`.
 */
export function decodeNetworkSelections(text: string, source: string, most = Infinity): NetworkSelection[] | undefined {
  if (text.trim() === "") return undefined;
  const selections = /[[{"]/.test(text)
    ? decodeJsonConfig(entries, text, source, parseJsonWithRepeats).map((entry, index) =>
        selectionOf(readAsGo(entry), index, source),
      )
    : text.split(",").map((item, index) => splitShortForm(item, index, source));
  if (selections.length <= most) return selections;
  throw new ConfigError(source, [{ path: "", got: `${selections.length} networks`, wanted: `at most ${most}` }]);
}
