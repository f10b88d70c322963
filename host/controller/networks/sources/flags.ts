/**
 * The values of a flag in the command line of a Kubernetes program (pflag's rules): `--name=value`, or `--name value` as two words.
 * Called for the pods of the control plane.
 */

/**
 * The last value of the flag, which is the one that counts; undefined without it. Underscores in a flag's name are dashes. A word with blanks
 * that is no flag itself is a shell's line, and looked into.
 */
export function findFlag(name: string, command: readonly string[]): string | undefined {
  const words = command.flatMap((word) => (word.startsWith("-") ? [word] : wordsOf(word)));
  let found: string | undefined;
  for (const [index, word] of words.entries()) {
    if (word === "--") break;
    if (!word.startsWith("--")) continue;
    const equals = word.indexOf("=");
    const flag = (equals < 0 ? word : word.slice(0, equals)).slice(2).replaceAll("_", "-");
    if (flag !== name) continue;
    found = equals < 0 ? (words[index + 1] ?? "") : word.slice(equals + 1);
  }
  return found;
}

function wordsOf(line: string): string[] {
  return line.split(/\s+/).map((word) => word.replaceAll(/["']/g, ""));
}
