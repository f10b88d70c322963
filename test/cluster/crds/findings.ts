import { parse } from "yaml";
import { ConfigError } from "../../../host/config/config-error.ts";
import { decodeIpAllocation } from "../../../host/resources/ip-allocation.ts";
import { decodeManifests } from "../../../host/resources/manifest.ts";
import { type KubeClient, KubeError } from "../../lab/kube-client.ts";
import type { Row } from "./rows.ts";

export const COLLECTIONS: Readonly<Record<string, string>> = {
  IPPool: "ippools",
  IPPoolUsage: "ippoolusages",
  Subnet: "subnets",
  AddressRange: "addressranges",
  RangeMember: "rangemembers",
  ReservedIP: "reservedips",
  IPAllocation: "ipallocations",
  Coordinator: "coordinators",
};

export const pathOf = (kind: string): string => `/apis/ipam.vendor.io/v1/${COLLECTIONS[kind]}`;

/** Faults of an object; empty if it is accepted. */
export type Findings = readonly {
  readonly field: string;
  /** The wanted value. */
  readonly text: string;
  /** The value found, where the text has it. */
  readonly got?: string | undefined;
}[];

export function objectOf({ kind, name = "", spec, more }: Row): object {
  return {
    apiVersion: "ipam.vendor.io/v1",
    kind,
    metadata: { name },
    ...(spec === undefined ? {} : { spec }),
    ...more,
  };
}

/** Returns the findings of the embedded mode's decoder; IPAllocations are no manifests and have their own. */
export function decoderFindings(kind: string, object: unknown): Findings {
  try {
    if (kind === "IPAllocation") decodeIpAllocation(object, "test");
    else decodeManifests(JSON.stringify(object), "test");
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.mismatches.map(({ path, got, wanted }) => ({ field: path, text: wanted, got }));
  }
}

interface Cause {
  readonly field?: string;
  readonly message?: string;
}

/** Unknown keys are refused before anything else, in a sentence of their own. */
function unknownFields(message: string): Findings {
  return [...message.matchAll(/unknown field "([^"]+)"/g)].map(([, field = ""]) => ({ field, text: "" }));
}

/** Text in front of a rule's own words. */
const VALUE = /^Invalid value: (?:"(?:[^"\\]|\\.)*"|[^\s:]+): /;

/** Said beside the findings about the form: CEL was not asked. */
const NOT_CHECKED = /some validation rules were not checked/;

/** `found "x", want y` */
function findingOf(field: string, message: string): Findings[number] {
  const [, got, text = message] = /^found (.*?), want (.*)$/s.exec(message) ?? [];
  return { field, text, got };
}

export function findingsOfError(error: unknown): Findings {
  if (!(error instanceof KubeError)) throw error;
  const { details, message = "" } = parse(error.message.slice(error.message.indexOf(": {") + 2)) ?? {};
  const findings = readCauses(details?.causes ?? [], message);
  if (findings.length === 0) throw error;
  return findings;
}

/** Returns the findings of a refusal: its `details.causes`, and its message. */
export function readCauses(causes: readonly Cause[], message: string): Findings {
  const found = causes.flatMap(({ field = "", message = "" }) =>
    NOT_CHECKED.test(message) ? [] : [findingOf(field, message.replace(VALUE, ""))],
  );
  return found.length > 0 ? found : unknownFields(message);
}

export async function serverFindings(client: KubeClient, kind: string, object: object): Promise<Findings> {
  try {
    await client.create(`${pathOf(kind)}?fieldValidation=Strict`, object);
    return [];
  } catch (error) {
    return findingsOfError(error);
  }
}
