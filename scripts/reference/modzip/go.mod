// Checks the Go module of the core as a proxy of modules would.
// Built by scripts/setup/versions.mjs into the user's cache; nothing of it enters the product.
module berth.local/reference/modzip

go 1.25.0

require golang.org/x/mod v0.38.0

tool berth.local/reference/modzip
