/**
 * What a pool holds, in numbers.
 * Called by the ABI.
 * Effects: the exchange buffer; may grow memory.
 *
 *  0        17       34      38    42           46         50          54         58
 *  │ size   │ masked │ window│ used│ used masked│ beyond   │ free      │ chunks   │
 *  │ 17 B BE│ 17 B BE│ u32 LE, each; "beyond" = used past the window; "free" = in the window
 */

import { chunkAt, chunkCountOf, maskedOf, usedMaskedOf, usedOf, windowOf } from "./bitmap";
import { exchangeAt, reserveExchange } from "./exchange";
import { bitmapOf, masksOf, rangesOf, sparseMaskedOf, sparseOf } from "./pool";
import { writeSizeAt } from "./range-codec";
import { sparseCount } from "./sparse-set";

const BYTES: u32 = 58;

function presentChunks(bitmap: usize): u32 {
  let present: u32 = 0;
  for (let chunk: u32 = 0; chunk < chunkCountOf(bitmap); chunk++) present += u32(chunkAt(bitmap, chunk) != 0);
  return present;
}

/** Writes the counts: their length in bytes, or a status. */
export function writeCounts(pool: usize): i32 {
  const status = reserveExchange(BYTES);
  if (status < 0) return status;
  const at = exchangeAt();
  const bitmap = bitmapOf(pool);
  const beyond = sparseCount(sparseOf(pool));
  writeSizeAt(rangesOf(pool), at);
  writeSizeAt(masksOf(pool), at + 17);
  store<u32>(at, windowOf(bitmap), 34);
  store<u32>(at, usedOf(bitmap) + beyond, 38);
  store<u32>(at, usedMaskedOf(bitmap) + sparseMaskedOf(pool), 42);
  store<u32>(at, beyond, 46);
  store<u32>(at, windowOf(bitmap) - maskedOf(bitmap) - (usedOf(bitmap) - usedMaskedOf(bitmap)), 50);
  store<u32>(at, presentChunks(bitmap), 54);
  return <i32>BYTES;
}
