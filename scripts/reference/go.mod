// The modules of scripts/setup/paths.mjs are verified by the go.sum beside this file.
module berth.local/reference

go 1.25.5
