#!/usr/bin/env node
/** The executable of `kubectl berth`: kubectl-berth-main.ts, on a Node.js that can load it. */
import { requireNode } from "./require-node.ts";

requireNode("kubectl-berth");
await import("./kubectl-berth-main.ts");
