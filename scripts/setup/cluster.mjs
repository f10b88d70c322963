/**
 * The control plane that the tests run: etcd, kube-apiserver and kube-proxy, the Debian packages that kube-proxy
 * calls, kubectl, and what GitOps tools conclude from an object. A cold build costs about seven minutes of one
 * processor; it prints how many packages it has compiled.
 * Effects: the user's cache, Debian packages (as root); nothing in the repository.
 */
import { debianStep } from "./debian.mjs";
import { goStep } from "./go.mjs";
import { referenceTool } from "./paths.mjs";

export function clusterSteps() {
  const title = "etcd, kube-apiserver and kube-proxy (minutes, the first time), Kubernetes";
  return [
    debianStep("cluster"),
    kubernetesStep("kubernetes", { title, rename: { server: "etcd" } }),
    kubernetesStep("kubectl", { title: "kubectl, Kubernetes" }),
    goStep({ tool: "health", title: "health checks of GitOps tools, kstatus" }),
  ];
}

/**
 * Programs of Kubernetes, from the module scripts/reference/<tool>. With the same flags everywhere: what two of them
 * share is compiled once.
 */
export function kubernetesStep(tool, { title, rename = {} }) {
  const { version } = referenceTool(tool);
  const [major, minor] = version.split(".");
  // Without them the programs call themselves v0.0.0 and the API server cannot determine which features belong to its
  // version.
  const stamps = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  return goStep({
    tool,
    title,
    // No debug information, and a lazy garbage collector of the compiler: both only cost time here.
    flags: ["-gcflags=all=-dwarf=false"],
    linkFlags: Object.entries(stamps).map(([key, value]) => `-X k8s.io/component-base/version.${key}=${value}`),
    env: { GOGC: "400" },
    rename,
  });
}
