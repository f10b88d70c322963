/**
 * Before every test of this kind: it is the kernel of User-Mode Linux, not the machine's own.
 * Effects: reads /proc.
 */
import { readFileSync } from "node:fs";

if (!/^vendor_id\s*: User Mode Linux$/m.test(readFileSync("/proc/cpuinfo", "utf8"))) {
  throw new Error(
    "Tests of kind uml run inside User-Mode Linux; this is the machine's own kernel. Run: node_modules/.bin/node scripts/uml.ts [FILE] [vitest's arguments]",
  );
}
