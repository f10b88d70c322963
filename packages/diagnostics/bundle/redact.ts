/**
 * Texts of a support bundle without secrets. JSON is redacted by its keys; every text, also one inside JSON, by the
 * form of secrets. Rather too much is redacted than too little. Texts of tenants are among them: repetitions
 * in patterns are bounded, so that the time grows with the length only.
 */

import { tryOr } from "../../../host/lib/try-or.ts";

const REDACTED = "[redacted]";

/** Words of keys whose values are secret. */
const WORDS =
  "token|passw(?:or)?d|passphrase|(?<![a-z])pass(?![a-z])|pwd|psk|secret|credential|authorization|private[-_]?key|access[-_]?key|api[-_]?key|key-data|certificate-data";

const SECRET_KEY = new RegExp(`${WORDS}|^auth$`, "i");

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

/** `https://user:password@host`, also with one of the two. */
const USER_INFO = /(:\/\/)[^\s/@"']+@/g;

/** `--token abc`. */
const OPTION = new RegExp(`(--[\\w-]{0,256}(?:${WORDS})\\s+)(?!-)\\S+`, "gi");

/** `-u user:password`, as curl has it. */
const USER_OPTION = /((?:^|\s)(?:-u[ =]?|--(?:proxy-)?user[ =])["']?)[^\s:"'\\]{1,256}:[^\s"'\\]+/g;

/** `key: value`, `key=value` and `"key": "value"`, also with escaped quotes, as inside a text of JSON. */
const KEY = `([\\w.-]{0,40}(?:${WORDS})[\\w.-]{0,40})`;
const PAIR = new RegExp(
  `(\\\\{0,16}["']?)\\b${KEY}(\\1\\s*[:=][ \\t]*)(\\\\+"[^"\\\\]*(?:\\\\+")?|"(?:[^"\\\\\\n]|\\\\.)*"?|'(?:[^'\\n]|'')*'?|\\[[^\\]\\n]*\\]?|[^\\s,}\\]{[|>"'\\\\][^,}\\]\\n]*)`,
  "gi",
);
const ASSIGNMENT = new RegExp(`\\b${KEY}(=)((?:(?:Bearer|Basic)\\s+)?[^\\s"'\\\\][^\\s]*)`, "gi");

/** A line of YAML: its indentation with marks of lists, and the key. */
const YAML_KEY = new RegExp(`^([ \\t]*(?:- +)*)["']?${KEY}["']?[ \\t]*:`, "i");

/** The rest of such a line if the value is on the next ones. */
const NO_VALUE = /^[ \t]*(?:[|>&!#].*)?$/;

/** An environment variable of a container: its name, then its value. */
const VARIABLE = new RegExp(
  `(\\bname["']?\\s*:\\s*["']?[\\w.-]{0,256}(?:${WORDS})[\\w.-]{0,256}["']?(?:\\s*,)?\\s*["']?value["']?\\s*:\\s*)("(?:[^"\\\\]|\\\\.)*"|'[^']*'|[^\\n,}]+)`,
  "gi",
);

/** Returns the text without tokens, passwords, keys and certificates. */
export function redact(text: string): string {
  const whole = /^\s*[{[]/.test(text) ? redactJson(text) : undefined;
  if (whole !== undefined) return whole;
  const lines = text.split("\n").map((line) => (line.startsWith("{") ? redactJson(line) : undefined) ?? line);
  return redactForms(lines.join("\n"));
}

function redactForms(text: string): string {
  return redactYaml(redactPem(text))
    .replace(VARIABLE, `$1"${REDACTED}"`)
    .replace(ASSIGNMENT, (whole, key: string) => (NAMES_ONLY.test(key) ? whole : `${key}="${REDACTED}"`))
    .replace(PAIR, (whole, quote: string, key: string, sign: string) => {
      const slashes = quote.replace(/["']/, "");
      return NAMES_ONLY.test(key) ? whole : `${quote}${key}${sign}${slashes}"${REDACTED}${slashes}"`;
    })
    .replace(OPTION, `$1${REDACTED}`)
    .replace(USER_OPTION, `$1${REDACTED}`)
    .replace(BEARER, `$1 ${REDACTED}`)
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(JWT, REDACTED)
    .replace(KNOWN_FORMS, REDACTED);
}

/** The next lines that are indented more belong to a secret key, and those of a list that are indented as much. */
function redactYaml(text: string): string {
  let secretAt = Number.POSITIVE_INFINITY;
  const kept = text.split("\n").flatMap((line) => {
    const indent = line.search(/[^ \t]/);
    if (indent < 0) return line;
    if (indent > secretAt || (indent === secretAt && line.startsWith("- ", indent))) return [];
    const [start = "", marks = "", key = ""] = YAML_KEY.exec(line) ?? [];
    const isSecret = start !== "" && !NAMES_ONLY.test(key);
    secretAt = isSecret ? marks.length : Number.POSITIVE_INFINITY;
    return isSecret && NO_VALUE.test(line.slice(start.length)) ? `${start} "${REDACTED}"` : line;
  });
  return kept.join("\n");
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

/** Returns JSON without secrets; undefined for a text that is none, or is nested too deeply. */
function redactJson(text: string): string | undefined {
  return tryOr(() => {
    const value: unknown = JSON.parse(text);
    const redacted = redactValue(value, false);
    // Of a repeated key only the last value was parsed.
    if (JSON.stringify(redacted) === JSON.stringify(value)) return redactForms(text);
    const indent = text.trim().includes("\n") ? 2 : 0;
    return `${JSON.stringify(redacted, undefined, indent)}${text.endsWith("\n") ? "\n" : ""}`;
  }, undefined);
}

/** `isSecret`: below a key whose values are secret. */
function redactValue(value: unknown, isSecret: boolean): unknown {
  if (typeof value !== "object" || value === null) {
    if (isSecret && value !== "") return REDACTED;
    return typeof value === "string" ? redact(value) : value;
  }
  if (Array.isArray(value)) return value.map((each) => redactValue(each, isSecret));
  const { name } = value as { readonly name?: unknown };
  const isVariable = typeof name === "string" && isSecretKey(name);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      redact(key),
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
