/** Texts of a support bundle without secrets. */

const REDACTED = "[redacted]";

/** PEM, also with line feeds written as \n, as in JSON. */
const PEM = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]{0,32768}?-----END \1-----/g;

/** A JSON Web Token: a token of a service account. */
const JWT = /\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]+)?/g;

const BEARER = /\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi;

/** Keys whose values are secret, in JSON, YAML and `KEY=VALUE`. */
const SECRET =
  /((?:["']?)[\w.-]{0,40}(?:token|password|passwd|secret|api[-_]?key|client-key-data|client-certificate-data|authorization)["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,}\]]+)/gi;

/** Texts such as `tokenFile` and `secretName` name secrets and are none. */
const NAMES_ONLY = /(?:file|name|path|ref|directory)["']?\s*[:=]\s*$/i;

/** Returns the text without tokens, passwords, keys and certificates. */
export function redact(text: string): string {
  return text
    .replace(PEM, REDACTED)
    .replace(BEARER, `$1 ${REDACTED}`)
    .replace(SECRET, (whole, key: string) => (NAMES_ONLY.test(key) ? whole : `${key}"${REDACTED}"`))
    .replace(JWT, REDACTED);
}
