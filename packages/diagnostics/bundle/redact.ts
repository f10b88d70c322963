/**
 * Texts of a support bundle without secrets. JSON is redacted by its keys; every text, also one inside JSON, by the
 * form of secrets. Rather too much is redacted than too little. Texts of tenants are among them: repetitions
 * in patterns are bounded, so that the time grows with the length only.
 */

import { tryOr } from "../../../host/lib/try-or.ts";

const REDACTED = "[redacted]";

/** Words of keys whose values are secret. */
const WORDS =
  "token|passw(?:or)?d|passphrase|secret|credential|authorization|private[-_]?key|access[-_]?key|api[-_]?key|key-data|certificate-data";

const SECRET_KEY = new RegExp(`${WORDS}|^(?:auth|psk)$`, "i");

/** Keys such as `tokenFile` and `secretName` name secrets and are none. */
const NAMES_ONLY = /(?:file|name|path|ref|directory|dir)$/i;

/** Ends of PEM blocks. */
const PEM_MARK = /-----(BEGIN|END) [A-Z0-9 ]{1,40}-----/g;

/** A line of PEM; the ends of one that was cut are shorter. */
const PEM_LINE = /^[A-Za-z0-9+/=]{0,80}$/;

/** Longest PEM block: UTF-16 units. */
const MAX_PEM = 64 * 1024;

/** A JSON Web Token: a token of a service account. */
const JWT = /(?<![\w-])eyJ[\w-]{8,8192}\.[\w-]+(?:\.[\w-]+)?/g;

/** Bootstrap tokens of kubeadm, keys of clouds and forges. */
const KNOWN_FORMS =
  /\b(?:[a-z0-9]{6}\.(?=[a-z]*\d)[a-z0-9]{16}|AKIA[A-Z0-9]{16}|gh[pousr]_\w{20,}|xox[abprs]-[\w-]{10,})\b/g;

const BEARER = /\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi;

/** `https://user:password@host`. */
const USER_INFO = /(:\/\/)[^\s/@:"']+:[^\s/@"']+@/g;

/** `--token abc`. */
const OPTION = new RegExp(`(--[\\w-]{0,256}(?:${WORDS})\\s+)(?!-)\\S+`, "gi");

/** `key: value`, `key=value` and `"key": "value"`, also with escaped quotes, as inside a text of JSON. */
const KEY = `([\\w.-]{0,40}(?:${WORDS})[\\w.-]{0,40})`;
const PAIR = new RegExp(
  `(\\\\{0,16}["']?)\\b${KEY}(\\1\\s*[:=][ \\t]*)(\\\\+"[^"\\\\]*\\\\+"|"(?:[^"\\\\]|\\\\.)*"|'[^']*'|\\[[^\\]\\n]*\\]?|[^\\s,}\\]{[|>"'\\\\][^,}\\]\\n]*)`,
  "gi",
);
const ASSIGNMENT = new RegExp(`\\b${KEY}(=)([^\\s"'\\\\][^\\s]*)`, "gi");

/** A YAML block: all lines that are indented more than its key. */
const BLOCK = new RegExp(
  `^([ \\t]*(?:- )?)["']?${KEY}["']?:[ \\t]*[|>][-+\\d]*[ \\t]*\\n(?:\\1[ \\t]+[^\\n]*(?:\\n|$)|[ \\t]*\\n)*`,
  "gim",
);

/** An environment variable of a container: its name, then its value. */
const VARIABLE = new RegExp(
  `(\\bname["']?\\s*:\\s*["']?[\\w.-]{0,256}(?:${WORDS})[\\w.-]{0,256}["']?\\s*,?\\s*["']?value["']?\\s*:\\s*)("(?:[^"\\\\]|\\\\.)*"|'[^']*'|[^\\n,}]+)`,
  "gi",
);

/** Returns the text without tokens, passwords, keys and certificates. */
export function redact(text: string): string {
  return redactForms(redactJson(text));
}

function redactForms(text: string): string {
  return redactPem(text)
    .replace(VARIABLE, `$1"${REDACTED}"`)
    .replace(BLOCK, (whole, indent: string, key: string) =>
      NAMES_ONLY.test(key) ? whole : `${indent}${key}: "${REDACTED}"\n`,
    )
    .replace(ASSIGNMENT, (whole, key: string) => (NAMES_ONLY.test(key) ? whole : `${key}="${REDACTED}"`))
    .replace(PAIR, (whole, quote: string, key: string, sign: string) => {
      const slashes = quote.replace(/["']/, "");
      return NAMES_ONLY.test(key) ? whole : `${quote}${key}${sign}${slashes}"${REDACTED}${slashes}"`;
    })
    .replace(OPTION, `$1${REDACTED}`)
    .replace(BEARER, `$1 ${REDACTED}`)
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(JWT, REDACTED)
    .replace(KNOWN_FORMS, REDACTED);
}

/** PEM also without its beginning or its end, where a text was cut; line feeds may be written as \n, as in JSON. */
function redactPem(text: string): string {
  const kept: string[] = [];
  let done = 0;
  const marks = [...text.matchAll(PEM_MARK)];
  for (const [at, mark] of marks.entries()) {
    if (mark.index < done) continue;
    const next = marks[at + 1];
    const isWhole = next?.[1] === "END" && next.index - mark.index < MAX_PEM;
    const isBegin = mark[1] === "BEGIN";
    const markEnd = mark.index + mark[0].length;
    const before = linesOf(text.slice(done, mark.index).slice(-MAX_PEM)).reverse();
    const after = linesOf(text.slice(markEnd, next?.index).slice(0, MAX_PEM));
    kept.push(text.slice(done, isBegin ? mark.index : mark.index - pemLength(before)), REDACTED);
    done = isBegin ? markEnd + pemLength(after) : markEnd;
    if (isBegin && isWhole) done = next.index + next[0].length;
  }
  return kept.join("") + text.slice(done);
}

/** Each with its line feed. */
const linesOf = (text: string): string[] => text.split(/(?<=\n|\\n)/);

/** Returns how much of the lines' beginning is PEM: UTF-16 units. */
function pemLength(lines: readonly string[]): number {
  const end = lines.findIndex((line) => !PEM_LINE.test(line.replace(/\\n$/, "").trim()));
  return lines.slice(0, end === -1 ? lines.length : end).join("").length;
}

/** Redacts a text that is JSON, or lines that are, by their keys. Others stay as they are. */
function redactJson(text: string): string {
  if (!/^[^\S\n]*[{[]/m.test(text)) return text;
  const whole = parseJson(text);
  if (whole !== undefined) return reprint(text, whole, text.trim().includes("\n") ? 2 : 0);
  return text
    .split("\n")
    .map((line) => {
      const value = line.startsWith("{") ? parseJson(line) : undefined;
      return value === undefined ? line : reprint(line, value, 0);
    })
    .join("\n");
}

function parseJson(text: string): unknown {
  return tryOr(() => JSON.parse(text), undefined);
}

function reprint(text: string, value: unknown, indent: number): string {
  const redacted = redactValue(value, false);
  if (JSON.stringify(redacted) === JSON.stringify(value)) return text;
  return `${JSON.stringify(redacted, undefined, indent)}${text.endsWith("\n") ? "\n" : ""}`;
}

/** `isSecret`: below a key whose values are secret. */
function redactValue(value: unknown, isSecret: boolean): unknown {
  if (typeof value === "string") return isSecret && value !== "" ? REDACTED : value;
  if (Array.isArray(value)) return value.map((each) => redactValue(each, isSecret));
  if (typeof value !== "object" || value === null) return value;
  const { name } = value as { readonly name?: unknown };
  const isVariable = typeof name === "string" && isSecretKey(name);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      redactValue(inner, isSecret || isSecretKey(key) || (isVariable && key === "value")),
    ]),
  );
}

function isSecretKey(key: string): boolean {
  return SECRET_KEY.test(key) && !NAMES_ONLY.test(key);
}

/** Returns whether the text is a kubeconfig: all of it is secret. */
export function isKubeconfig(text: string): boolean {
  return /^\s*["']?kind["']?\s*:\s*["']?Config\b/m.test(text) && /["']?\busers["']?\s*:/.test(text);
}
