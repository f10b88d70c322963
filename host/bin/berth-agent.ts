#!/usr/bin/env node
/** The executable `berth-agent`: berth-agent-main.ts, on a Node.js that can load it. */
import { useCodeCache } from "./code-cache.ts";
import { requireNode } from "./require-node.ts";

requireNode("berth-agent");
useCodeCache("berth-agent");
await import("./berth-agent-main.ts");
