/**
 * The executable `berth-agent`: the same process again with limits on V8's heap and one heap of the C library, both of
 * which can be set before the start only. Without them the agent works as well and takes a third more memory.
 */
import { become, DISABLE_SIGUSR1, requireNode } from "./run-main.ts";

/** Megabytes. The young generation holds what a call makes; the agent keeps no object per address. */
const HEAP_LIMITS = ["--max-semi-space-size=4", "--max-old-space-size=96"];

requireNode("berth-agent");
become("berth-agent-main.mjs", [...HEAP_LIMITS, DISABLE_SIGUSR1], { MALLOC_ARENA_MAX: "1" });
