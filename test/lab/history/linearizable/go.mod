// Whether a history of a small pool is linearizable, by Porcupine. Built by scripts/setup.mjs into dist/test;
// nothing of it enters the product.
module berth.local/test/lab/history/linearizable

go 1.24.0

require github.com/anishathalye/porcupine v1.3.1
