/**
 * Other versions of what real nodes are made of, for the long tests: containerd 2 beside Debian's, and the oldest Kubernetes that is promised beside the
 * one of cluster.mjs and nodes.mjs. A cold build costs about ten minutes of one processor.
 * Effects: the user's cache.
 */
import { kubernetesStep } from "./cluster.mjs";
import { goStep } from "./go.mjs";

export function versionsSteps() {
  return [
    containerdStep(),
    kubernetesStep("kubernetes-1.31", { title: "the oldest Kubernetes (minutes, the first time), version" }),
  ];
}

/** containerd links no snapshotter and tracer that the lab does not use; what calls the C library is left out with CGO_ENABLED=0. */
function containerdStep() {
  const tags = ["no_btrfs", "no_zfs", "no_devmapper", "no_tracing"];
  return goStep({
    tool: "containerd",
    title: "containerd",
    flags: ["-gcflags=all=-dwarf=false", "-tags", tags.join(",")],
  });
}
