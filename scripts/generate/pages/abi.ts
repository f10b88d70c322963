/** The page docs/develop/wasm-abi.md, for embedders. */
import type { AbiDescription, AbiExport } from "../abi-description.ts";

const MEMORY_PICTURE = `\`\`\`
       0 ┌───────────────────────────────────────────────┐
         │ header, 64 bytes, all u32 unless stated       │
         │   0 heap used      4 handle table   8 slots   │
         │  12 freed slot    16 exchange      20 length  │
         │  24 live objects  28 slots ever used          │
         │  32 two u64 registers for 128-bit results     │
         │  48 snapshot reader: place, end               │
      64 ├───────────────────────────────────────────────┤
         │ free lists: one per block size                │
     256 ├───────────────────────────────────────────────┤
         │ heap: handle table · exchange buffer · sets   │   state_bytes() = 256 + heap used;
         │       · pools · chunks · sparse sets · rings  │   what lies beyond is zero and untouched
         └───────────────────────────────────────────────┘

pool     family │ bytes │ ranges → │ masks → │ sparse → │ cursor │ freed → │ sparse masked │ bitmap

bitmap   top ───────────────► 64 groups ─────────────► 4,096 chunks, on demand: an absent one is all free
         u64, bit i:          u64 each, bit j:         used    64 u64 ┐ an ordinal is free when neither bit is set;
         group i is full      chunk j of it is full    masked  64 u64 ┘ only where something is masked
         2^24 ordinals        2^18 each                4,096 each, 64 per word
         directory → one u32 per chunk: its address, lowest bit: it has masked bits
         summaries → one u64 per chunk, bit k: word k of it is full

set      family │ count │ capacity │ - │ entries of 48 bytes: first (hi, lo) │ last (hi, lo) │ addresses before (hi, lo)
\`\`\`
`;

const SNAPSHOT_FORMAT = `\`\`\`
  0   "BRTS" │ version u8 = 1 │ family u8 │ 0 u16
  8   digest of the ranges u64
 16   window u32 │ used in it u32 │ runs beyond it u32 │ cursor of round robin u32       all little-endian
 32   the window: tokens until all chunks of 4,096 ordinals are described; a token is the varint n << 2 | kind
        0  n chunks with nothing used
        1  n chunks all used
        2  one chunk, n = 0, then varints: so many clear, so many set, so many clear ... up to 4,096
        3  one chunk, n = 0, then its 512 bytes, ordinal i at bit i mod 8 of byte i / 8
      beyond the window, per run: varints of the distance from the end of the run before it (or from the window),
        high 64 bits, then low 64 bits; and of length - 1
 end  FNV-1a of all before it, 64 bits
\`\`\`

The digest is FNV-1a, 64 bits, over the family as u32 and then, for each range, first and last as two u64 each (high half first).
A snapshot contains neither masks nor the order of release.
`;

/** Parameters that mean the same in most exports; "A first call" explains them once. */
const COMMON_PARAMETERS: ReadonlySet<string> = new Set([
  "family: 4 or 6",
  "count: number of items in the exchange buffer",
  "length: prefix length, 0 to 32 or 128",
  "set: set handle",
  "a: set handle",
  "b: set handle",
  "pool: pool handle",
]);

function sectionOf(entry: AbiExport): string {
  const signature = `${entry.name}(${entry.params.map(({ name }) => name).join(", ")})`;
  const own = entry.params.filter(({ name, is }) => !COMMON_PARAMETERS.has(`${name}: ${is}`));
  const rows = [
    ...own.map(({ name, is }) => `* \`${name}\`: ${is}`),
    ...(entry.input === undefined ? [] : [`* exchange before: ${entry.input}`]),
    ...(entry.output === undefined ? [] : [`* exchange after: ${entry.output}`]),
    `* result: ${entry.result}${entry.statuses.length === 0 ? "" : `; or ${entry.statuses.join(", ")}`}`,
  ];
  return `### \`${signature}\`\n\n${entry.doc}\n\n${rows.join("\n")}\n`;
}

/**
 * Calls that repeat another one for every item of the exchange buffer; {@link batchSection} describes them together.
 */
const BATCH_DOC = /^(\w+) for each (address|ordinal)\. A failure ends the batch; those before it are done\.$/;

function batchSection(batches: readonly AbiExport[]): string {
  if (batches.length === 0) return "";
  const [first] = batches;
  const rows = batches.map(({ name, params, doc, input, statuses }) => {
    const [, single = ""] = BATCH_DOC.exec(doc) ?? [];
    const signature = `${name}(${params.map((param) => param.name).join(", ")})`;
    return [`\`${signature}\``, single, input ?? "", statuses.join(", ")];
  });
  return `
### Batches

Each performs its single call for every item. A failure ends the batch; those before it are done.

* exchange after: ${first?.output}
* result: ${first?.result}; or a status

${tableOf(["Export", "Single call", "Exchange before", "Statuses"], rows)}
`;
}

function tableOf(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

const GROUPS: readonly (readonly [string, RegExp])[] = [
  ["The module", /^(?:abi_|exchange|drop|state_|live_)/],
  ["Prefixes", /^prefix_/],
  ["Range sets", /^set_/],
  ["Pools", /^pool_/],
];

export function abiPage(abi: AbiDescription): string {
  const conventions = Object.entries(abi.conventions).map(([name, text]) => `* **${name}**: ${text}`);
  const groups = GROUPS.map(([title, names]) => {
    const own = abi.exports.filter(({ name }) => names.test(name));
    const [batches, single] = [true, false].map((isBatch) => own.filter(({ doc }) => BATCH_DOC.test(doc) === isBatch));
    return `## ${title}\n\n${single?.map(sectionOf).join("\n")}${batchSection(batches ?? [])}`;
  });
  return `# The ABI of berth-core.wasm

Version ${abi.version.major}.${abi.version.minor}. The tests compare \`assembly/abi.json\`, the source of this page, with the core's source and with the built module. Every
embedding replays the vectors in \`dist/core/vectors\`; \`host/core\` is a small complete embedding.

${conventions.join("\n")}

## A first call

\`\`\`
exchange(8)                        → address of the buffer; write 0a 00 00 00  0a 00 00 ff there
set_create(4, 1)                   → ranges: 10.0.0.0-10.0.0.255
set_create(4, 0)                   → masks: none
pool_create(ranges, masks)         → pool
pool_allocate(pool, 2, hash)       → ordinal, say 77
pool_address(pool, 77)             → 0; the buffer says 0a 00 00 4d
\`\`\`

Unless stated otherwise, \`family\` is 4 or 6, \`length\` a prefix length (0 to 32 or 128), \`count\` the number of items in the exchange buffer, and
\`set\`, \`a\`, \`b\` and \`pool\` are handles.

## Memory

${MEMORY_PICTURE}
## What it leaves out

* Time, randomness, names, text: seeds are arguments, addresses are bytes, everything else belongs to the host.
* Threads: use one instance for each thread. A copy of the memory is a copy of the allocator.
* Shrinking memory: freed blocks are reused for blocks of the same size (powers of two).
* Constant time everywhere: \`pool_find_run\` scans words, so its cost grows with the number of holes that are too
  small; \`pool_edit\`, \`pool_used\`, \`pool_save\` and \`pool_load\` take time in proportion to the used addresses. All other
  calls take a few nanoseconds at any size and fill.

## Statuses

${tableOf(
  ["Code", "Name", "Meaning"],
  abi.statuses.map(({ name, code, doc }) => [code, name, doc]),
)}

## Ceilings

${tableOf(
  ["Name", "Value", "Meaning"],
  abi.ceilings.map(({ name, value, doc }) => [name, value.toLocaleString("en-US"), doc]),
)}

## Policies

${tableOf(
  ["Number", "Name", "Meaning"],
  abi.policies.map(({ name, value, doc }) => [value, name, doc]),
)}

## Counts

${tableOf(
  ["Offset", "Name", "As", "Meaning"],
  abi.counts.map(({ name, at, as, doc }) => [at, name, as, doc]),
)}

## Snapshots

${SNAPSHOT_FORMAT}
${groups.join("\n")}`;
}
