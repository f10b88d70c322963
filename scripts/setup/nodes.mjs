/**
 * The parts of real nodes: kubelet, controller manager and scheduler beside the control plane of cluster.mjs, Multus,
 * Debian's runtime, and the program of pods that do nothing.
 * Effects: the user's cache, Debian packages (as root), dist/nodes.
 */
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { kubernetesStep } from "./cluster.mjs";
import { run } from "./command.mjs";
import { debianStep } from "./debian.mjs";
import { goStep } from "./go.mjs";
import { root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";

export function nodesSteps() {
  const title = "kubelet, kube-controller-manager and kube-scheduler (minutes, the first time), Kubernetes";
  return [
    debianStep("nodes"),
    kubernetesStep("nodes", { title }),
    goStep({ tool: "multus", title: "Multus" }),
    pauseStep(),
  ];
}

/** The first process of a pod's sandbox, and of a node. */
function pauseStep() {
  const source = join(root, "test", "lab", "nodes", "pause.c");
  const output = join(root, "dist", "nodes", "pause");
  const flags = ["-O2", "-Wall", "-Wextra", "-static", "-s"];
  return buildStep({
    name: "pause",
    inputs: [source],
    outputs: [output],
    texts: flags,
    build: () => {
      mkdirSync(join(root, "dist", "nodes"), { recursive: true });
      run("musl-gcc", [...flags, "-o", `${output}.tmp`, source]);
      renameSync(`${output}.tmp`, output);
    },
  });
}
