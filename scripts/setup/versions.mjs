/**
 * For the long tests alone. Other versions of what real nodes are made of: containerd 2 and CRI-O beside Debian's
 * containerd, and the oldest Kubernetes that is promised beside the one of cluster.mjs and nodes.mjs; CoreDNS;
 * and what checks the Go module of the core. A cold build costs about twenty minutes of one processor.
 * Effects: the user's cache, Debian packages (as root), dist/nodes.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { kubernetesStep } from "./cluster.mjs";
import { run } from "./command.mjs";
import { debianStep } from "./debian.mjs";
import { goProgramStep, goStep } from "./go.mjs";
import { referenceTool, root } from "./paths.mjs";
import { buildStep } from "./stamp.mjs";

export function versionsSteps() {
  return [
    debianStep("versions"),
    containerdStep(),
    crioStep(),
    pinnsStep(),
    kubernetesStep("kubernetes-1.31", { title: "the oldest Kubernetes (minutes, the first time), version" }),
    goProgramStep({ name: "CoreDNS", source: "test/lab/coredns", program: "test/coredns" }),
    goStep({ tool: "modzip", title: "check of Go modules" }),
  ];
}

/**
 * containerd links no snapshotter and tracer that the lab does not use; what calls the C library is left out with
 * CGO_ENABLED=0.
 */
function containerdStep() {
  const tags = ["no_btrfs", "no_zfs", "no_devmapper", "no_tracing"];
  return goStep({
    tool: "containerd",
    title: "containerd",
    flags: ["-gcflags=all=-dwarf=false", "-tags", tags.join(",")],
  });
}

/** With the C library, which its store needs; without optional libraries of Debian. */
function crioStep() {
  const tags = [
    "containers_image_ostree_stub",
    "containers_image_openpgp",
    "exclude_graphdriver_btrfs",
    "btrfs_noversion",
  ];
  return goStep({
    tool: "crio",
    title: "CRI-O",
    flags: ["-gcflags=all=-dwarf=false", "-tags", tags.join(",")],
    env: { CGO_ENABLED: "1" },
  });
}

/** CRI-O's program in C that makes the namespaces of pods. */
function pinnsStep() {
  const { source } = referenceTool("crio");
  const output = join(root, "dist", "nodes", "pinns");
  const flags = ["-std=c99", "-Os", "-static", "-s"];
  return buildStep({
    name: "pinns of CRI-O",
    inputs: [join(source, "go.mod")],
    outputs: [output],
    texts: flags,
    build: () => {
      const list = ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "github.com/cri-o/cri-o"];
      const folder = execFileSync("go", list, { cwd: source, encoding: "utf8" }).trim();
      const files = ["pinns.c", "sysctl.c"].map((name) => join(folder, "pinns", "src", name));
      mkdirSync(join(root, "dist", "nodes"), { recursive: true });
      run("gcc", [...flags, "-o", `${output}.tmp`, ...files]);
      renameSync(`${output}.tmp`, output);
    },
  });
}
