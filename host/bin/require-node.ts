/** Checks that Node.js is new enough before anything is loaded that an old one cannot parse. Imports nothing. */

/** The first version with everything that Berth uses, as pinned in package.json. */
const MIN_NODE_MAJOR = 26;

/** Ends the process with a sentence when Node.js is too old for `program`. */
export function requireNode(program: string): void {
  const { node } = process.versions;
  if (Number.parseInt(node, 10) >= MIN_NODE_MAJOR) return;
  console.error(
    `${program} needs Node.js ${MIN_NODE_MAJOR} or newer, this is ${node} (${process.execPath}); install a newer version, or run ${program} with one`,
  );
  process.exit(1);
}
