/** Schemas of names of Kubernetes objects and of patterns of pool names. */
import { cel, matchRule } from "../../lib/cel.ts";
import { parsedText } from "../../lib/schema.ts";
import { isPattern, isWellFormedPattern } from "../pattern.ts";

/** Longest name of a Kubernetes object (RFC 1123 subdomain): characters. */
export const MAX_NAME_LENGTH = 253;

/** Longest DNS label (namespace, address space), and longest name or value of a Kubernetes label: characters. */
export const MAX_LABEL_LENGTH = 63;

const LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?";

/** One part of a name, of any length. */
export const DNS_LABEL = new RegExp(`^${LABEL}$`);

/** Parts separated by dots, of any length. */
export const DNS_SUBDOMAIN = new RegExp(`^${LABEL}(?:[.]${LABEL})*$`);

/** Returns whether the text is a DNS label as Kubernetes defines it (RFC 1123 §2.1). */
export function isDnsLabel(text: string): boolean {
  return text.length <= MAX_LABEL_LENGTH && DNS_LABEL.test(text);
}

/** Returns whether the text is a DNS subdomain to Kubernetes, which limits only the length of the whole name. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && DNS_SUBDOMAIN.test(text);
}

/** The form that {@link isDnsSubdomain} accepts, for error texts. */
const DNS_SUBDOMAIN_FORM = `a name of lower-case letters, digits, "-" and ".", at most ${MAX_NAME_LENGTH} characters`;

/** The name of a Kubernetes object. */
export const objectName = parsedText(
  (text) => (isDnsSubdomain(text) ? text : undefined),
  DNS_SUBDOMAIN_FORM,
  MAX_NAME_LENGTH,
).meta({ title: "name", ...cel(matchRule(DNS_SUBDOMAIN, DNS_SUBDOMAIN_FORM)) });

const NAME_PATTERN = /^[a-z0-9.*?[\]!-]+$/;

function parseNameOrPattern(text: string): string | undefined {
  if (!isPattern(text)) return isDnsSubdomain(text) ? text : undefined;
  const wellFormed = text.length <= MAX_NAME_LENGTH && NAME_PATTERN.test(text) && isWellFormedPattern(text);
  return wellFormed ? text : undefined;
}

/** The name of a pool, or a pattern of such names. */
export const nameOrPattern = parsedText(
  parseNameOrPattern,
  `${DNS_SUBDOMAIN_FORM}, or a pattern of names with *, ? or [..]`,
).meta({ title: "name or pattern" });

const NAMESPACE_FORM = "the name of a namespace";

/** The name of a namespace. */
export const namespaceName = parsedText(
  (text) => (isDnsLabel(text) ? text : undefined),
  NAMESPACE_FORM,
  MAX_LABEL_LENGTH,
).meta({ title: "name", ...cel(matchRule(DNS_LABEL, NAMESPACE_FORM)) });
