/** Values of options that several programs and packages parse alike. */
import { InvalidArgumentError, Option } from "commander";

/** Returns a parser of numbers; `wanted` says which `isWanted` takes. */
export const numberOf =
  (wanted: string, isWanted: (value: number) => boolean) =>
  (text: string): number => {
    const value = Number(text);
    if (text.trim() === "" || !isWanted(value)) throw new InvalidArgumentError(`expected ${wanted}, found "${text}"`);
    return value;
  };

/** Returns a parser of texts; `wanted` says which `form` takes. */
export const textOf =
  (wanted: string, form: RegExp) =>
  (text: string): string => {
    if (!form.test(text)) throw new InvalidArgumentError(`expected ${wanted}, found "${text}"`);
    return text;
  };

export const parseName = textOf("a Kubernetes name", /^[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/);

/** An option of a namespace, which an environment variable may give. */
export const namespaceOption = (flag: string, description: string, variable: string): Option =>
  new Option(`${flag} <name>`, description).argParser(parseName).default("kube-system").env(variable);

const parseSeconds = numberOf("seconds, more than 0 and at most 3600", (value) => value > 0 && value <= 3_600);

/** An option of seconds; `defaultMs`: milliseconds. */
export const seconds = (flag: string, description: string, defaultMs: number): Option =>
  new Option(`${flag} <seconds>`, description).argParser(parseSeconds).default(defaultMs / 1000);
