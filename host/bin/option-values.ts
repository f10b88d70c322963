/** Values of options that several programs and packages parse alike. */
import { InvalidArgumentError, Option } from "commander";

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() === "" || !(seconds > 0 && seconds <= 3_600)) {
    throw new InvalidArgumentError(`expected seconds, more than 0 and at most 3600, found "${text}"`);
  }
  return seconds;
}

export function parseName(text: string): string {
  if (!/^[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/.test(text)) {
    throw new InvalidArgumentError(`expected a Kubernetes name, found "${text}"`);
  }
  return text;
}

/** An option of seconds; `defaultMs`: milliseconds. */
export const seconds = (flag: string, description: string, defaultMs: number): Option =>
  new Option(`${flag} <seconds>`, description).argParser(parseSeconds).default(defaultMs / 1000);
