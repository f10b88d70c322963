/** Who takes part, and how each one's program is started; the program is given the folder of shapes. */
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";

export interface Contestant {
  /** What its program calls itself, in `runtime`. */
  readonly name: string;
  readonly label: string;
  readonly kind: "peer" | "berth";
  /** Without the folder, which is the last argument. */
  readonly command: readonly string[];
}

function peer(name: string, label: string): Contestant {
  return { name, label, kind: "peer", command: [join(root, "dist", "bench", "allocators", name)] };
}

function berth(name: string, label: string, ...command: readonly string[]): Contestant {
  return { name, label, kind: "berth", command };
}

function built(...path: readonly string[]): string {
  return join(root, "dist", "embeddings", ...path);
}

export const CONTESTANTS: readonly Contestant[] = [
  peer("cilium", "Cilium, bitmap"),
  peer("kubernetes", "Kubernetes, bitmap"),
  peer("kube-ovn", "Kube-OVN, list of ranges"),
  peer("host-local", "host-local, iterator"),
  peer("whereabouts", "whereabouts"),
  peer("spiderpool", "Spiderpool"),
  berth("javascript", "Node.js", process.execPath, built("browser", "bench.mjs")),
  berth("chromium", "Chromium", process.execPath, built("browser", "bench.mjs"), "--chromium"),
  berth("rust", "Rust", built("rust", "bench")),
  berth("c", "C", built("c", "bench")),
  berth("go", "Go", built("go", "bench")),
  berth("java", "Java", "java", "-cp", built("java", "*"), "io.vendor.berth.core.tools.Bench"),
  berth("python", "Python", built("python", "venv", "bin", "python"), join(root, "embeddings", "python", "bench.py")),
];
