/**
 * The tests of kind `uml`, in the User-Mode Linux that they need.
 *
 *   node_modules/.bin/node scripts/uml.ts                                    all of them
 *   node_modules/.bin/node scripts/uml.ts test/uml/kernel-links.test.ts -t bond
 *   node_modules/.bin/node scripts/uml.ts -- ip -d link                      another command, in the repository's root
 *   node_modules/.bin/node scripts/uml.ts --kernel=ipv6.disable=1 -- ip addr a word of the kernel's command line
 *
 * Effects: a guest, see uml/machine.ts, which can write to the folder for temporary files. The exit code is its own.
 */
import { tmpdir } from "node:os";
import { runInMachine, umlVitest } from "./uml/machine.ts";

const KERNEL = "--kernel=";
const words = process.argv.slice(2);
const kernel: string[] = [];
while (words[0]?.startsWith(KERNEL)) kernel.push(words.shift()?.slice(KERNEL.length) ?? "");
const command = words[0] === "--" ? words.slice(1) : umlVitest(words);
process.exitCode = await runInMachine(command, { directory: tmpdir(), kernel });
